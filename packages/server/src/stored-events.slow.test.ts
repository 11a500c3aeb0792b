import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from '@jest/globals';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { fileCalls } from '@millrace/store';
import { encodesWhatIsStored } from './stored-events.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'stored-events-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

describe('S7: events of the in-process store encode as live ones', () => {
  encodesWhatIsStored(() => createCallStore(inProcessCalls()));
});

describe('S7: events of files encode as live ones', () => {
  encodesWhatIsStored(() => createCallStore(fileCalls(directory)));
});
