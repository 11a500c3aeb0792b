import { describe, expect, it } from '@jest/globals';
import { readCall } from './files.js';

const file = (more: object = {}): string =>
  JSON.stringify({
    ...{ format: 'millrace-devtools-call', version: 1, call: { id: 'c' }, items: [] },
    ...more,
  });

describe('readCall', () => {
  it('reads an exported call', () => {
    expect(readCall(file())).toMatchObject({ call: { id: 'file c', isOpen: true }, items: [] });
  });

  it.each([[{ format: 'other' }], [{ call: {} }], [{ items: 'none' }]])(
    'reads no other file: %j',
    (more) => {
      expect(readCall(file(more))).toBeUndefined();
    },
  );

  it.each([0, 2, '1', undefined])('refuses another format version: %j', (version) => {
    expect(() => readCall(file({ version }))).toThrow(
      `This file has format version ${JSON.stringify(version)}, but these devtools read only format version 1.`,
    );
  });
});
