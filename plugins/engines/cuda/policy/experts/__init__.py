"""Where the experts of a mixture stand, which replica a token takes, when they move. numpy alone:
knows no device, no weights and no link."""
