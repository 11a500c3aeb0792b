import type { FilePart } from './ui-message.js';

/**
 * Reads a file of the user. Rejects with the reason, for the user. Larger pictures are scaled: models do so anyway, and the server limits
 * requests. What the browser cannot read as a picture is sent as a file: a model would refuse it, too.
 */
export const filePartOf = async (file: File): Promise<FilePart> => {
  if (file.size === 0) throw new Error(`${file.name} is empty.`);
  const isPicture = file.type.startsWith('image/') && file.type !== 'image/svg+xml';
  const blob = isPicture ? await pictureOf(file) : file;
  if (blob.size > maxFileBytes) {
    throw new Error(`${file.name} is too large: a file may have ${maxFileBytes / 1e6} MB.`);
  }
  const mediaType =
    /^[\w.+-]+\/[\w.+-]+/u.exec(blob.type)?.[0] ??
    (await heicOf(file)) ??
    'application/octet-stream';
  const base64 = (await dataUrlOf(blob, file.name)).replace(/^[^,]*,/u, '');
  return {
    type: 'file',
    url: `data:${mediaType};base64,${base64}`,
    mediaType,
    filename: file.name.slice(0, 255),
  };
};

const maxBytes = 700_000;
const maxSide = 1_568;
/** In base64, one file fits into a request of a server with its default limit. */
const maxFileBytes = 2_500_000;

const pictureOf = async (file: File): Promise<Blob> => {
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  if (bitmap === undefined) return file.slice();
  if (file.size <= maxBytes) return file;
  const factor = Math.min(1, maxSide / Math.max(bitmap.width, bitmap.height));
  const canvas = new OffscreenCanvas(bitmap.width * factor, bitmap.height * factor);
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 });
};

/** The type of a picture of many phones, which browsers often do not know: by its name and its first bytes. */
const heicOf = async (file: File): Promise<string | undefined> => {
  if (!/\.hei[cf]$/iu.test(file.name)) return undefined;
  const brand = await file
    .slice(4, 12)
    .text()
    .catch(() => '');
  if (/^ftyphe(?:ic|ix|vc|vx|im|is)$/u.test(brand)) return 'image/heic';
  return /^ftyp(?:mif1|msf1)$/u.test(brand) ? 'image/heif' : undefined;
};

const dataUrlOf = (blob: Blob, name: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(typeof reader.result === 'string' ? reader.result : '');
    reader.onerror = () => reject(unreadable(name));
    reader.readAsDataURL(blob);
  });

const unreadable = (name: string): Error => new Error(`${name} cannot be read.`);
