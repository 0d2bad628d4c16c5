# 이름을 설정하지 않아 커밋이 거부되었는데, 응답을 읽지 않고 지나갔습니다.
git config --global user.useConfigOnly true
cd git-01/trip
git init -q -b main
git add plan.txt
git commit -q -m "이틀 일정 계획" || true
