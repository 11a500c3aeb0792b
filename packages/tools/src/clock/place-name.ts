/** Writes the name of a place so that spellings of it are equal: `São Paulo` and `sao_paulo`. */
export const plainPlaceName = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .replace(/\b(?:and|the)\b/gu, ' ')
    .replace(/\s+/gu, ' ')
    .trim();
