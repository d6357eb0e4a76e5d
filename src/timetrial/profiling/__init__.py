"""Operations of a step: read from the traces that frameworks' own profilers write, brought into one table."""
