import { chatServer } from '@millrace/server/chat';
import { agent } from './agent.js';

// eslint-disable-next-line no-restricted-syntax -- These runtimes want it.
export default { fetch: chatServer(agent).respond };
