import { messageOf } from '../errors.js';
import { isRecord, isTooDeep } from '../json.js';
import { jsonCopy } from './json-copy.js';
import { type Place, type Read, wrong } from './read-fields.js';

/**
 * Copies what is any JSON, such as the input of a tool. A key `__proto__` and what JSON cannot hold are refused where they come from outside,
 * and left out where they are of this process.
 */
export const json: Read<unknown> = (value, place) => {
  if (isTooDeep(value)) throw wrong(place, 'is nested more than 100 levels deep');
  if (place.isForeign) refuseHostile(value, place);
  try {
    return jsonCopy(value) ?? null;
  } catch (cause) {
    throw wrong(place, `is nothing that JSON can hold: ${messageOf(cause)}`);
  }
};

/** Copies a JSON object. */
export const jsonObject: Read<Readonly<Record<string, unknown>>> = (value, place) => {
  const copy = isRecord(value) ? json(value, place) : undefined;
  if (isRecord(copy)) return copy;
  throw wrong(place, 'must be an object');
};

const refuseHostile = (value: unknown, place: Place): void => {
  if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      if (key === '__proto__') throw wrong(place, "has a key '__proto__'");
      refuseHostile(part, place);
    }
  } else if (
    !['string', 'boolean', 'undefined'].includes(typeof value) &&
    value !== null &&
    !Number.isFinite(value)
  ) {
    throw wrong(place, `holds a ${typeof value} that JSON cannot hold`);
  }
};
