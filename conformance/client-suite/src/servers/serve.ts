import { serve } from '@millrace/server/node';
import { agent } from './agent.js';

const port = Number(process.env['PORT'] ?? 3_000);
// eslint-disable-next-line rxjs-x/no-ignored-error -- An error ends the process.
serve(agent, { port }).subscribe(({ url }) => console.log(url));
