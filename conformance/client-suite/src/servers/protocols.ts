import { a2a } from '@millrace/a2a/server';
import { agUi } from '@millrace/server/ag-ui';
import { serve } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { agent } from './agent.js';

const port = Number(process.env['PORT'] ?? 3_000);
const protocols = [agUi(), openAi(), a2a()];
// eslint-disable-next-line rxjs-x/no-ignored-error -- An error ends the process.
serve(agent, { port, protocols }).subscribe(({ url }) => console.log(url));
