import { startMock } from './start-mock.js';

// With the process that started it, it ends too.
process.on('disconnect', () => process.exit(0));
const mock = await startMock({
  isWatching: process.argv.includes('--watch'),
  isTls: process.argv.includes('--tls'),
});
// Any message asks what it has seen.
process.on('message', () => void mock.seen().then((seen) => process.send?.(seen)));
process.send?.({ baseURL: mock.baseURL, certificate: mock.certificate });
