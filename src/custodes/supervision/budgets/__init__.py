"""What a fan-out may use: the rules, and the account that holds to them."""
