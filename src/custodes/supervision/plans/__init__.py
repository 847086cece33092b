"""Plans on record: steps as data, each written down before it starts and with its end."""
