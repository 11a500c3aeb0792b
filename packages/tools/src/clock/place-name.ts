/** Normalizes the name of a place: `São Paulo` and `sao_paulo` become equal. */
export const normalizePlaceName = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .replace(/\b(?:and|the)\b/gu, ' ')
    .replace(/\s+/gu, ' ')
    .trim();
