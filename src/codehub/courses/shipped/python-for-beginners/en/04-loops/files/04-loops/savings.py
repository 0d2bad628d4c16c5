goal = int(input("Goal? "))
# Ask what is saved every week.

saved = 0
week = 0
# Here comes a while loop: in every round, one more week and more money.

# After the loop, print how many weeks were needed.

# When all this works: what if nothing is saved every week?
