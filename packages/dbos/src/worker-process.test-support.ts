import { fromEvent } from 'rxjs';
import { clerk } from './engine.test-support.js';
import { openDbos } from './open-dbos.js';

// A worker of its own process: `node … <url> <version or ''> <what its agent says>`. SIGTERM drains it.
const [, , url = '', version = '', says = ''] = process.argv;
const engine = openDbos(url, {
  ...(version === '' ? {} : { version }),
  store: { leaseMs: 5_000 },
});
engine
  .work$([clerk('clerk', says)], {
    pollMs: 20,
    recoverMs: 300,
    drainMs: 5_000,
    until$: fromEvent(process, 'SIGTERM'),
  })
  .subscribe({
    next: (notice) => process.stdout.write(`${JSON.stringify(notice)}\n`),
    error: (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
    complete: () => {
      engine.close$().subscribe({ complete: () => process.exit(0) });
    },
  });
