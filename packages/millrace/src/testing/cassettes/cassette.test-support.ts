import { afterAll, afterEach, beforeEach } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, throwError, toArray } from 'rxjs';
import type { ModelContext, ModelRequest } from '../../models/model.js';
import type { Model } from '../../index.js';
import { cassette, lentContext } from '../index.js';

/** No key, but it looks like one. */
export const key = ['sk', 'proj', 'Abc123Def456Ghi789Jkl012'].join('-');

export const folder = mkdtempSync(join(tmpdir(), 'cassette-'));
let files = 0;
export const newFile = (): string => join(folder, `${(files += 1)}.json`);

/** Keeps the tests of a file from the variables of the environment, and removes their files in the end. */
export const isolate = (): void => {
  const before = { ...process.env };
  beforeEach(() => {
    delete process.env['CI'];
    delete process.env['MILLRACE_CASSETTES'];
  });
  afterEach(() => {
    process.env = { ...before };
  });
  afterAll(() => rmSync(folder, { recursive: true }));
};

export const never: Model = {
  name: 'scripted',
  stream$: () => throwError(() => new Error('The model was asked.')),
};

export const asking = (words: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  ...more,
  messages: [{ id: `${Math.random()}`, role: 'user', content: [{ type: 'text', text: words }] }],
});

export const chunksOf = (model: Model, request = asking('?'), context?: Partial<ModelContext>) =>
  lastValueFrom(model.stream$(request, lentContext(context)).pipe(toArray()));

/** Records requests one after the other, and returns the path. */
export const recordedBy = async (
  model: Model,
  requests: readonly ModelRequest[] = [asking('?')],
  options: Parameters<typeof cassette>[2] = {},
): Promise<string> => {
  const file = newFile();
  const recording = cassette(file, model, options);
  for (const request of requests) await chunksOf(recording, request).catch(() => undefined);
  recording.verify();
  return file;
};

export const stored = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
