export type Side = 'server' | 'client';

const tasks = 'An extension: the SDK has no tasks for servers of this version.';
const dpop = 'An extension: the SDK has no proofs of possession (RFC 9449).';

/** The scenarios that are expected to fail, with the reason. One that passes has to be removed here. */
export const unsupported: Readonly<Record<Side, Readonly<Record<string, string>>>> = {
  server: {
    'server-sse-polling': 'serveMcp cannot resume a stream; the suite only warns about that.',
    'tasks-lifecycle': tasks,
    'tasks-capability-negotiation': tasks,
    'tasks-wire-fields': tasks,
    'tasks-request-state-removal': tasks,
    'tasks-mrtr-input': tasks,
    'tasks-request-headers': tasks,
    'tasks-dispatch-and-envelope': tasks,
    'tasks-status-notifications': 'The suite skips it.',
    'tasks-required-task-error': tasks,
    'tasks-mrtr-composition': tasks,
  },
  client: {
    'auth/dpop': dpop,
    'auth/dpop-nonce': dpop,
    'auth/wif-jwt-bearer': 'An extension: the SDK has no provider for the identity of a workload.',
  },
};
