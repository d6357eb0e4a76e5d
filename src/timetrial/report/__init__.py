"""Tables, charts and pages made from records. Nothing is measured here."""
