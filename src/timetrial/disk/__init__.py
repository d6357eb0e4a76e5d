"""Where the user's data lives on this disk, and taking turns with other processes there."""
