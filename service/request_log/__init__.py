"""The log of partners' calls: recorded beside the responses, read in the developer console."""
