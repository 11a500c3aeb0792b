import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentSchema } from './document-schema.js';

describe('schema.json', () => {
  it('G6: is the schema that documents are checked with', () => {
    const path = join(import.meta.dirname, '..', 'schema.json');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(documentSchema)),
    );
  });
});
