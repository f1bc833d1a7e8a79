"""Who may ask: keys, sign-ups, and the database behind them."""
