def average(numbers):
    return 0  # 1단계


def read_scores(path):
    scores = {}
    # 2단계: 파일을 열고, 한 줄씩 읽어 딕셔너리를 채우세요
    return scores


scores = read_scores("scores.txt")
print(scores)
# 3단계: report.txt 쓰기
# 4단계: 1등 찾기
