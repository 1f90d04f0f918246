"""Other products: their exports and users, and adapters for their interfaces."""
