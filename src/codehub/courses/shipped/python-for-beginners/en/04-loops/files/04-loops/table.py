number = int(input("Number? "))
# Here comes a for loop that prints one line per round.
