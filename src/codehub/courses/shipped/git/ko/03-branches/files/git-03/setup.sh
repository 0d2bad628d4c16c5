# 이번 실습에 쓸 저장소를 만듭니다. 이 스크립트 옆에 concert 폴더가 생깁니다.
#   sh ~/git-03/setup.sh          처음 한 번
#   sh ~/git-03/setup.sh again    다시 시작. 지금까지 한 것은 concert-old-1, concert-old-2 …로 남겨 둡니다.
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git이 설치되어 있지 않습니다. 선생님이나 관리자에게 알려 주세요."
  exit 1
fi
if [ -e concert ]; then
  if [ "${1:-}" != again ]; then
    echo "concert 폴더가 이미 있어서 아무것도 바꾸지 않았습니다. 다시 시작하려면: sh ~/git-03/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "concert-old-$n" ]; do n=$((n + 1)); done
  mv concert "concert-old-$n"
  echo "지금까지 하던 폴더는 concert-old-$n(으)로 옮겼습니다."
fi

# 아래 커밋은 미나가 만든 것으로 합니다. 여러분의 Git 설정은 쓰지 않습니다.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=미나 GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=미나 GIT_COMMITTER_EMAIL=mina@example.com

git init -q -b main concert
cd concert
printf '봄 연주회\n일시: 5월 3일 19시\n' > program.txt
git add program.txt
git commit -q -m "연주회 알림"
printf '학교 강당 2층\n' > place.txt
git add place.txt
git commit -q -m "장소 안내"
git switch -q -c fix-date
printf '봄 연주회\n일시: 5월 13일 19시\n' > program.txt
git add program.txt
git commit -q -m "날짜 수정"
git switch -q main

echo "준비되었습니다. cd ~/git-03/concert 한 다음 git branch와 git log --oneline --graph --all로 살펴보세요."
if [ -z "$settings" ]; then
  echo "Git이 아직 여러분의 이름을 모릅니다. 커밋하기 전에 알려 주세요."
  echo '  git config --global user.name "홍길동"'
  echo '  git config --global user.email "you@example.com"'
fi
