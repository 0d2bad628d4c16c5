def average(numbers):
    return 0  # step 1


def read_scores(path):
    scores = {}
    # step 2: open the file, go through its lines, fill the dictionary
    return scores


scores = read_scores("scores.txt")
print(scores)
# step 3: write report.txt
# step 4: the best one
