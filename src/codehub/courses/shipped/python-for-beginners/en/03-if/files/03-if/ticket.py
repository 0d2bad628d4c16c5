# The ticket machine. The prices are in prices.txt, in this folder.

age = int(input("Age? "))
# 1. Ask whether it is the weekend, and keep the answer.

# 2. Find the price by age: if, elif, elif, else.

# 3. At the weekend, add 2, unless the ticket is free.

# 4. Print the price: "Price: 12"

# 5. At last: for an impossible age, print "Please check the age." instead.
