import { createAgent, requireApproval } from 'millrace';
import { approvalQueue } from '@millrace/server/approvals';
import { serve } from '@millrace/server/node';
import { model, pay } from './agent.js';

const port = Number(process.env['PORT'] ?? 3_000);
const key = process.env['APPROVALS_KEY'] ?? crypto.getRandomValues(new Uint8Array(32));
const approvals = approvalQueue({ key });
const agent = createAgent({ model, tools: [requireApproval(pay, approvals.approve)] });
// eslint-disable-next-line rxjs-x/no-ignored-error -- An error ends the process.
serve(agent, { port, approvals }).subscribe(({ url }) => console.log(url));
