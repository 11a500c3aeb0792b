/** `String.fromCharCode` takes that many arguments everywhere. */
const maxArguments = 8_192;

/** Encodes bytes, on every platform. */
export const toBase64 = (bytes: Uint8Array): string => {
  const parts: string[] = [];
  for (let from = 0; from < bytes.length; from += maxArguments) {
    parts.push(String.fromCharCode(...bytes.subarray(from, from + maxArguments)));
  }
  return btoa(parts.join(''));
};

/** Decodes base64. Throws if it is malformed. */
export const fromBase64 = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

export const joinBytes = (parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
};

/** The media type of an image by its first bytes; PNG if they are unknown. */
export const imageType = (base64: string): string =>
  imageStarts.find(([start]) => base64.startsWith(start))?.[1] ?? 'image/png';

const imageStarts = [
  ['/9j/', 'image/jpeg'],
  ['UklGR', 'image/webp'],
  ['R0lGOD', 'image/gif'],
] as const;

/** The media type of audio in a format of OpenAI. */
export const audioType = (format: string): string => audioTypes.get(format) ?? `audio/${format}`;

const audioTypes: ReadonlyMap<string, string> = new Map([
  ['mp3', 'audio/mpeg'],
  ['opus', 'audio/ogg'],
  ['pcm', 'audio/wav'],
  ['pcm16', 'audio/wav'],
]);

export const isRaw = (format: string): boolean => format === 'pcm' || format === 'pcm16';

/**
 * Adds the header of a WAV file to OpenAI's raw samples, which nothing plays without it: 16 bits, mono, 24 kHz
 * (http://soundfile.sapp.org/doc/WaveFormat/).
 */
export const withWavHeader = (samples: Uint8Array): Uint8Array<ArrayBuffer> => {
  const bytes = new TextEncoder().encode(`RIFF....WAVEfmt ${'.'.repeat(20)}data....`);
  const header = new DataView(bytes.buffer);
  header.setUint32(4, 36 + samples.length, true);
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, sampleRate, true);
  header.setUint32(28, sampleRate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  header.setUint32(40, samples.length, true);
  return joinBytes([bytes, samples]);
};

const sampleRate = 24_000;
