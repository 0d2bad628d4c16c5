# The ticket machine. The prices are in prices.txt, in this folder.

age = int(input("Age? "))
# Ask whether it is the weekend, and keep the answer.

# Find the price by age: if, elif, elif, else.

# At the weekend, add 2, unless the ticket is free.

# Print the price: "Price: 12"

# When all this works: for an impossible age, print "Please check the age." instead.
