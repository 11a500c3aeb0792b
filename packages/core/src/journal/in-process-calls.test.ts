import { describe, it } from '@jest/globals';
import { journalContract } from '../testing/journal-contract.js';
import { inProcessCalls } from './in-process-calls.js';

describe('inProcessCalls', () => {
  for (const { name, run } of journalContract(() => ({ first: inProcessCalls() }))) {
    it(`S6: ${name}`, run);
  }
});
