#!/bin/sh
# Makes the files of this folder anew with OpenSSL 3: a key generation authority, a private
# key that it signed, and envelopes around that for recipients of each kind.
# usage: make.sh, in this folder
set -eu
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
OUT=$PWD
cd "$W"

key() { openssl genpkey -algorithm EC -pkeyopt "ec_paramgen_curve:$2" -out "$1.key"; }
certificate() { # name, issuer, extensions
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    printf '%s\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n' "$3" > "$1.cnf"
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -days 7000 -extfile "$1.cnf" \
        -out "$1.pem" 2>/dev/null
}
USAGE='keyUsage=critical,digitalSignature'
KGA="$USAGE
extendedKeyUsage=1.3.6.1.5.5.7.3.32"

key root P-256
openssl req -x509 -new -key root.key -subj /CN=root -days 7300 -out root.pem \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>/dev/null
key kga P-256
certificate kga root "$KGA"
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out kga-rsa.key 2>/dev/null
certificate kga-rsa root "$KGA"
key signer P-256
certificate signer root "$USAGE"
key stranger P-256
openssl req -x509 -new -key stranger.key -subj /CN=root -days 7300 -out stranger.pem \
    -addext basicConstraints=critical,CA:TRUE 2>/dev/null
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.key 2>/dev/null
certificate rsa root 'keyUsage=digitalSignature,keyEncipherment'
key ec P-384
certificate ec root 'keyUsage=digitalSignature,keyAgreement'
key new P-256

# OneAsymmetricKey of version 2 in an AsymmetricKeyPackage.
openssl ec -in new.key -outform DER -out sec1.der 2>/dev/null
openssl pkey -in new.key -pubout -outform DER -out new.spki
hex() { od -An -v -tx1 "$1" | tr -d ' \n'; }
PUBLIC=$(hex new.spki | tail -c 130)
package() { # entries of the SEQUENCE OF
    cat <<END
asn1=SEQUENCE:package
[package]
$1
[key]
version=INTEGER:1
algorithm=SEQUENCE:algorithm
privateKey=FORMAT:HEX,OCTETSTRING:$(hex sec1.der)
publicKey=IMPLICIT:1,FORMAT:HEX,BITSTRING:$PUBLIC
[algorithm]
oid=OID:id-ecPublicKey
curve=OID:prime256v1
END
}
package 'one=SEQUENCE:key' > one.cnf
openssl asn1parse -noout -genconf one.cnf -out one.der
package 'one=SEQUENCE:key
two=SEQUENCE:key' > two.cnf
openssl asn1parse -noout -genconf two.cnf -out two.der

# What is inside a ContentInfo.
inside() { # input, output
    openssl asn1parse -inform DER -in "$1" > parsed
    AT=$(sed -n '3s/:.*hl=/ /p' parsed | awk '{print $1 + substr($2, 1, 1)}')
    tail -c +$((AT + 1)) "$1" > "$2"
}
sign() { # output, content, signer, further options
    output=$1 content=$2 signer=$3
    shift 3
    openssl cms -sign -binary -nodetach -nosmimecap -md sha256 -in "$content" -signer "$signer.pem" \
        -inkey "$signer.key" -outform DER -out info.der "$@"
    inside info.der "$OUT/$output.der"
}
PACKAGE='-econtent_type 2.16.840.1.101.2.1.2.78.5'
sign signed one.der kga -keyid $PACKAGE
sign signed-rsa one.der kga-rsa $PACKAGE
sign signed-two-keys two.der kga -keyid $PACKAGE
sign signed-bare sec1.der kga -keyid
sign signed-wrong-purpose one.der signer -keyid $PACKAGE
sign signed-no-certificate one.der kga -keyid -nocerts $PACKAGE
openssl cms -sign -binary -nodetach -nosmimecap -md sha256 -in one.der -signer kga.pem \
    -inkey kga.key -signer kga-rsa.pem -inkey kga-rsa.key -outform DER -out info.der $PACKAGE
inside info.der "$OUT/signed-twice.der"

encrypt() { # output, further options
    output=$1
    shift
    openssl cms -encrypt -binary -in "$OUT/signed.der" -outform DER -out info.der "$@"
    inside info.der "$OUT/$output.der"
}
encrypt ktri-pkcs1 -aes-128-cbc -recip rsa.pem -keyid
encrypt ktri-oaep -aes-256-cbc -recip rsa.pem -keyopt rsa_padding_mode:oaep \
    -keyopt rsa_oaep_md:sha256 -keyopt rsa_mgf1_md:sha256
encrypt kari -aes-256-cbc -recip ec.pem -keyid -keyopt ecdh_kdf_md:sha384 -aes192-wrap
encrypt kari-sha1 -aes-256-cbc -recip ec.pem -keyid
encrypt pwri -aes-256-cbc -pwri_password 'a secret of the house'
openssl cms -encrypt -binary -in "$OUT/signed.der" -outform DER -out info.der -aes-256-cbc \
    -recip rsa.pem ec.pem
inside info.der "$OUT/two-recipients.der"

for name in root kga signer stranger rsa ec; do
    openssl x509 -in "$name.pem" -outform DER -out "$OUT/$name.crt"
done
for name in rsa ec new; do
    openssl pkey -in "$name.key" -outform DER -out "$OUT/$name.key"
done
cp new.spki one.der sec1.der "$OUT"
