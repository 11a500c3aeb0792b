import { startMock } from './start-mock.js';

// With the process that started it, it ends too.
process.on('disconnect', () => process.exit(0));
const { baseUrl } = await startMock({ isWatching: process.argv.includes('--watch') });
process.send?.(baseUrl);
