# 이번 실습에 쓸 서버를 만듭니다. 이 스크립트 옆에 bare 저장소 server.git이 생깁니다.
#   sh ~/git-04/setup.sh          처음 한 번
#   sh ~/git-04/setup.sh again    다시 시작. 지금까지 한 것은 old-1, old-2 …에 남겨 둡니다.
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git이 설치되어 있지 않습니다. 선생님이나 관리자에게 알려 주세요."
  exit 1
fi
if [ -e server.git ]; then
  if [ "${1:-}" != again ]; then
    echo "서버가 이미 있어서 아무것도 바꾸지 않았습니다. 다시 시작하려면: sh ~/git-04/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "old-$n" ]; do n=$((n + 1)); done
  mkdir "old-$n"
  mv server.git "old-$n/"
  if [ -e mine ]; then mv mine "old-$n/"; fi
  echo "지금까지 하던 것은 old-$n 폴더로 옮겼습니다."
fi

# 첫 커밋은 미나가 만든 것으로 합니다. 여러분의 Git 설정은 쓰지 않습니다.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=미나 GIT_AUTHOR_EMAIL=mina@example.com
export GIT_COMMITTER_NAME=미나 GIT_COMMITTER_EMAIL=mina@example.com

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q --bare -b main server.git
git init -q -b main "$work"
printf '월요일: 비빔밥\n화요일: 카레\n금요일: 국수\n' > "$work/lunch.txt"
git -C "$work" add lunch.txt
git -C "$work" commit -q -m "점심 계획"
git -C "$work" push -q "$PWD/server.git" main

echo "준비되었습니다. 서버는 ~/git-04/server.git입니다. 이제 cd ~/git-04 한 다음 mine 폴더로 복제하세요."
if [ -z "$settings" ]; then
  echo "Git이 아직 여러분의 이름을 모릅니다. 커밋하기 전에 알려 주세요."
  echo '  git config --global user.name "홍길동"'
  echo '  git config --global user.email "you@example.com"'
fi
