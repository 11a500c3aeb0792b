import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { type DatabaseStore, openSqlite } from '@millrace/store/sqlite';
import { lastValueFrom } from 'rxjs';
import { encodesWhatIsStored } from './stored-events.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'stored-events-'));
let store: DatabaseStore;
beforeAll(() => {
  store = openSqlite(join(directory, 'store.db'));
});
afterAll(async () => {
  await lastValueFrom(store.close$(), { defaultValue: undefined });
  rmSync(directory, { recursive: true });
});

describe('S7: events of a SQLite database encode as live ones', () => {
  encodesWhatIsStored(() => store.calls);
});
