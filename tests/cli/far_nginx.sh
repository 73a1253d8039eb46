# http:// and https:// from nginx: the bytes of a local directory, each fetched once, at the line's rate; TLS by
# a certificate of the test's own; a password from ~/.netrc.
need_numpy
command -v nginx >/dev/null || skip 'nginx is not installed'
ldconfig -p | grep -q 'libcurl.*\.so\.4' || skip 'libcurl is not installed'
"$SOURCE_DIR/scripts/make-checkpoint" model --experts 8 --hidden 1024 --intermediate 1024 --layers 2 >/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 2 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null || skip 'openssl is not installed'
printf 'user:%s\n' "$(openssl passwd -apr1 far-password)" >users
read -r plain tls slow < <("$python" -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(each.getsockname()[1] for each in sockets))')
cat >nginx.conf <<END
user $(id -un) $(id -gn); daemon off; worker_processes 1; pid $PWD/pid; error_log $PWD/errors;
events { worker_connections 128; }
http {
  log_format bytes '\$body_bytes_sent \$remote_user';
  access_log $PWD/asked bytes;
  client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3;
  uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
  root $PWD;
  server { listen 127.0.0.1:$plain; location /closed/ { alias $PWD/model/; auth_basic x; auth_basic_user_file $PWD/users; } }
  server { listen 127.0.0.1:$slow; limit_rate 200k; }
  server { listen 127.0.0.1:$tls ssl; ssl_certificate $PWD/cert.pem; ssl_certificate_key $PWD/key.pem; }
}
END
nginx -e "$PWD/errors" -c "$PWD/nginx.conf" 2>/dev/null &
server=$!
cleanup() {
  kill "$server" 2>/dev/null || true
  ! [ -d mounted/here ] || fusermount3 -u mounted
}
for _ in $(seq 100); do [ -e pid ] || sleep 0.05; done
[ -e pid ] || { cat errors; fail 'nginx did not start'; }
export http_proxy='' https_proxy='' HOME=$PWD
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
made='--backend TRITON --arch sm90'

# From each server the same bytes; less than 1.02 of those of the experts, and the samples, headers, config.
# shellcheck disable=SC2086
convert_quietly model -o here $made
needed=$("$BIN" inspect model --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["expert_bytes"])')
for url in http://127.0.0.1:$plain/model/ http://127.0.0.1:$slow/model https://localhost:$tls/model; do
  : >asked
  # shellcheck disable=SC2086
  SSL_CERT_FILE=cert.pem convert_quietly $url -o there $made
  diff -r here there || fail "$url: other bytes"
  fetched=$(awk '{ n += $1 } END { print n }' asked)
  [ "$fetched" -lt $((needed * 102 / 100 + 400000)) ] || fail "$url: $fetched bytes for $needed"
  rm -rf there
done
# A start fetches what its rank reads, each byte once: of a checkpoint the rank's rows of w13, all of w2 and the
# samples; of a blob its files. The same bytes as from here.
cat >start.py <<'END'
import sys
import numpy as np
import mxfp4_repack
place, flags = sys.argv[1], dict(arch="sm90", backend="TRITON", tp_size=2)
blob = mxfp4_repack.open_checkpoint(place, rank=1, **flags) if "model" in place else mxfp4_repack.open_blob(place)
for prefix in blob:
    for name in sorted(blob[prefix]):
        bytes_of = np.empty(blob[prefix].info(name).nbytes, np.uint8)
        blob[prefix].read_into(name, 0, bytes_of, threads=3)
        sys.stdout.buffer.write(bytes_of)
END
start() { PYTHONPATH=$SOURCE_DIR/scripts/python MXFP4_REPACK_LIBRARY=$LOADER "$python" start.py "$@"; }
# A sanitizer's library, or another processor's, cannot be loaded.
if "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$LOADER" 2>/dev/null; then
  for what in "model $((needed * 2 / 3))" "here $(stat -c %s here/layer-* | awk '{ n += $1 } END { print n }')"; do
    read -r what needed <<<"$what"
    start $what >expected
    : >asked
    start http://127.0.0.1:$plain/$what >got
    cmp expected got || fail "a start from $what: other bytes"
    fetched=$(awk '{ n += $1 } END { print n }' asked)
    [ "$fetched" -lt $((needed * 102 / 100 + 400000)) ] || fail "a start from $what: $fetched bytes for $needed"
  done
  # A program's file system, which is read from front to back, whatever threads ask for.
  mkdir mounted shared
  ln -s ../here ../model shared
  if command -v rclone >/dev/null && [ -w /dev/fuse ] &&
    rclone mount --copy-links shared mounted --read-only --daemon --config /dev/null; then
    start here >expected
    start mounted/here >got
    # shellcheck disable=SC2086
    convert_quietly mounted/model -o there $made
    fusermount3 -u mounted
    cmp expected got || fail 'a start from a mount: other bytes'
    diff -r here there || fail 'converted from a mount: other bytes'
    rm -r there
  fi
fi
convert_quietly http://127.0.0.1:$plain/model -o there $made --include-rest
cmp model/generation_config.json there/generation_config.json || fail 'a file beside the weights'
grep -q 'does not list' warnings || fail 'no word about files that are not listed'

# A certificate that nobody vouches for, a password, what is not there.
expect_exit 3 "$BIN" inspect https://localhost:$tls/model
grep -q SSL_CERT_FILE stderr || fail 'no word about certificates'
expect_exit 3 "$BIN" inspect http://127.0.0.1:$plain/closed
expect_one_error '401'
echo 'machine 127.0.0.1 login user password far-password' >.netrc
expect_exit 0 "$BIN" inspect http://127.0.0.1:$plain/closed
expect_exit 3 "$BIN" inspect http://127.0.0.1:$plain/nowhere
expect_one_error '404'
expect_exit 2 "$BIN" inspect "http://user:secret@127.0.0.1:$plain/model"
rm model/model-00000-*.safetensors
expect_exit 3 "$BIN" inspect http://127.0.0.1:$plain/model
expect_one_error 'model-00000-.*404'
