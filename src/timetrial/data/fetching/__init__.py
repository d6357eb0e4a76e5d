"""Getting datasets: from their publishers' addresses, or out of packages that have the data inside."""
