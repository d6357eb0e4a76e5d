"""The real datasets, by kind. A module here registers its sets when the registry is first asked."""
