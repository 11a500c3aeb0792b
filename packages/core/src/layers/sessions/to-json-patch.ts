import type { StatePatch } from '../../events.js';
import { jsonCopy } from './read-state.js';

export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Converts patches of a `stateChanged` event to a JSON Patch (RFC 6902). Values are copied. */
export const toJsonPatch = (patches: readonly StatePatch[]): readonly JsonPatchOperation[] =>
  patches.flatMap(({ op, path, value }): readonly JsonPatchOperation[] => {
    const at = path.map((key) => `/${escaped(String(key))}`).join('');
    if (op === 'remove') return [{ op, path: at }];
    const copy = jsonCopy(value);
    if (copy !== undefined) return [{ op, path: at, value: copy }];
    // In JSON, a field without a value is absent, and such an item of a list is null.
    if (typeof path.at(-1) === 'number') return [{ op, path: at, value: null }];
    return op === 'replace' ? [{ op: 'remove', path: at }] : [];
  });

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
