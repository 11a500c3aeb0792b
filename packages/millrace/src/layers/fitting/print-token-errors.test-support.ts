// Prints how far the counter is off, as a table for the docs: node packages/millrace/dist/layers/fitting/print-token-errors.test-support.js
import { tokenErrorTable } from './token-errors.test-support.js';

process.stdout.write(`${tokenErrorTable()}\n`);
