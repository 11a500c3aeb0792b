import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A key and its certificate, both in PEM. */
export interface Identity {
  readonly key: string;
  readonly cert: string;
}

/**
 * Makes a key, and a certificate for 127.0.0.1 that it has signed itself (https://www.rfc-editor.org/rfc/rfc5280). Node can read
 * certificates but not make them.
 */
export const selfSigned = (): Identity => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(der(0x31, sequence(objectId('550403'), der(0x0c, Buffer.from(host)))));
  const address = sequence(der(0x87, Buffer.from(host.split('.').map(Number))));
  const subjectAltName = sequence(objectId('551d11'), der(0x04, address));
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1), randomBytes(8)),
    ecdsaWithSha256,
    name,
    sequence(time('20200101000000Z'), time('29991231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(subjectAltName)),
  );
  const signature = der(0x03, Buffer.of(0), sign('sha256', content, privateKey));
  const base64 = sequence(content, ecdsaWithSha256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
};

const host = '127.0.0.1';

/** A value of ASN.1 in DER. */
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
};

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const objectId = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const time = (text: string): Buffer => der(0x18, Buffer.from(text));
const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));
