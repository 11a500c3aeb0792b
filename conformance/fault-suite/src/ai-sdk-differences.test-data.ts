import type { Wire } from '@millrace/fault-server';

type Outcomes = Readonly<Partial<Record<Wire, string>>>;

/** Faults that end otherwise through a provider package of the AI SDK than through the vendor's own package, and why. */
export interface Difference {
  readonly reason: string;
  /** How each fault ends, by wire. */
  readonly faults: Readonly<Record<string, Outcomes>>;
}

const all = (outcome: string): Outcomes => ({
  chat: outcome,
  responses: outcome,
  messages: outcome,
});

export const differences: readonly Difference[] = [
  {
    reason:
      'A JSON document or an HTML page has no events for the package. The adapter sees its content type only.',
    faults: {
      'body-html-as-stream': all('invalidResponse'),
      'body-html-endless': all('timeout'),
      'body-json-answer': all('invalidResponse'),
      'body-json-answer-as-stream': all('invalidResponse'),
      'body-json-answer-in-pieces': all('invalidResponse'),
      'body-json-error': all('invalidResponse'),
      'body-gzip-json': all('invalidResponse'),
      'body-json-answer-with-tools': all('invalidResponse'),
      'empty-json-answer': all('invalidResponse'),
      'end-filtered-json': all('invalidResponse'),
      'end-filtered-at-once-json': all('invalidResponse'),
      'end-refusal-json': all('invalidResponse'),
      'end-refusal-silent-json': { messages: 'invalidResponse' },
      'end-length-json': all('invalidResponse'),
      'end-length-at-once-json': all('invalidResponse'),
      'usage-null-json': { chat: 'invalidResponse', messages: 'invalidResponse' },
      'chat-tool-arguments-object-json': { chat: 'invalidResponse' },
    },
  },
  {
    reason: 'The package follows redirects: only its `fetch` can refuse them.',
    faults: {
      'redirect-301-elsewhere': all('invalidRequest'),
      'redirect-302-elsewhere': all('invalidRequest'),
      'redirect-303-elsewhere': all('invalidRequest'),
      'redirect-307-elsewhere': {
        chat: 'auth',
        responses: 'auth',
        messages: 'answer "It is sunny."',
      },
      'redirect-308-elsewhere': {
        chat: 'auth',
        responses: 'auth',
        messages: 'answer "It is sunny."',
      },
      'redirect-302-within': all('invalidRequest'),
      'redirect-within-then-elsewhere': {
        chat: 'auth',
        responses: 'auth',
        messages: 'answer "It is sunny."',
      },
      'redirect-loop': all('redirect'),
      'echo-location': { chat: 'auth', responses: 'auth', messages: 'redirect' },
    },
  },
  {
    reason: 'The package buffers events and bodies of errors without a limit of its size.',
    faults: {
      'flood-thinking': { chat: 'timeout' },
      'flood-endless-line': all('timeout'),
      'flood-endless-data': all('timeout'),
      'flood-endless-json': all('timeout'),
      'flood-error-body': all('timeout'),
      'flood-error-body-endless': all('timeout'),
    },
  },
  {
    reason:
      'The package reports its finish when the response ends, so what happens after the last event of the vendor counts.',
    faults: {
      'last-event-missing': { messages: 'invalidResponse' },
      'reset-after-finish': all('connection'),
      'stall-after-finish': all('timeout'),
      'stall-after-last-event': { chat: 'timeout', responses: 'timeout' },
      'preview-lost-after-end': all('invalidResponse'),
    },
  },
  {
    reason: 'The package reads on after the end, repeated events, and choices beside the first.',
    faults: {
      'events-twice': { responses: 'answer "It is It is sunny.sunny."' },
      'events-late': {
        chat: 'maxIterations',
        responses: 'invalidResponse',
        messages: 'answer "It is sunny. No."',
      },
      'other-choices': { chat: 'answer "No.It is sunny."' },
    },
  },
  {
    reason: 'The package splits events at line feeds, and drops the last one without a blank line.',
    faults: {
      'encoding-cr': { responses: 'invalidResponse', messages: 'invalidResponse' },
      'encoding-no-last-line': { responses: 'invalidResponse', messages: 'invalidResponse' },
    },
  },
  {
    reason: 'The package reads some fields and events only; whatever else has the answer is lost.',
    faults: {
      'preview-only-completed': { responses: 'answer "Done."' },
      'odd-responses-refusal-taken-back': { responses: 'answer "Done."' },
      'odd-responses-content-as-text': { responses: 'answer "Done."' },
      'odd-responses-text-done-contradicts': { responses: 'answer "It rains"' },
      'odd-responses-part-done-only': { responses: 'answer "Done."' },
      'odd-chat-whole-message-differs': { chat: 'answer "Done."' },
      'vendor-responses-only-unknown-item': { responses: 'answer "Done."' },
      'vendor-responses-unknown-event': { responses: 'answer "Done."' },
      'chat-tool-index-always-0': { chat: 'answer "Done."' },
    },
  },
  {
    reason: 'Only the package of the vendor knows calls that wait for results.',
    faults: {
      'vendor-responses-approval-given': { responses: 'invalidRequest' },
      'vendor-responses-approval-denied': { responses: 'invalidRequest' },
      'vendor-responses-call-beside-approval': { responses: 'invalidRequest' },
    },
  },
  {
    reason:
      'An answer that announces a call has none: the package may have left it out, so that the answer is an error.',
    faults: {
      'tool-finish-without-use': { chat: 'invalidResponse', messages: 'invalidResponse' },
    },
  },
  {
    reason:
      'The package validates each event. One that fails is an error, which is retried before anything is shown.',
    faults: {
      'stall-before-content-with-empty-deltas': { responses: 'invalidResponse' },
      'event-null': { responses: 'invalidResponse' },
      'events-unknown': { chat: 'invalidResponse', messages: 'invalidResponse' },
      'preview-only-done': { responses: 'invalidResponse' },
      'preview-done-contradicts': { responses: 'invalidResponse' },
      'preview-completed-contradicts': { responses: 'invalidResponse' },
      'preview-delta-missing': { responses: 'invalidResponse' },
      'preview-messages-no-block-stop': { messages: 'answer "Done."' },
      'preview-messages-no-message-stop': { messages: 'answer "Done."' },
      'preview-messages-no-start': { messages: 'invalidResponse' },
      'preview-messages-start-twice': { messages: 'answer "Done."' },
      'preview-messages-stop-twice': { messages: 'invalidResponse' },
      'preview-messages-start-contradicts': { messages: 'answer "Done."' },
      'preview-messages-finish-within-call': { messages: 'answer "Done."' },
      'preview-messages-only-unknown-block': { messages: 'invalidResponse' },
      'preview-messages-unknown-block-and-call': { messages: 'answer "Done."' },
      'preview-messages-unknown-delta': { messages: 'invalidResponse' },
      'odd-responses-call-listed-twice': { responses: 'invalidResponse' },
      'odd-responses-arguments-as-object': { responses: 'invalidResponse' },
      'odd-responses-delta-as-object': { responses: 'invalidResponse' },
      'odd-responses-other-response': { responses: 'answer "Done."' },
      'odd-responses-created-twice': { responses: 'invalidResponse' },
      'odd-messages-other-message': { messages: 'answer "Done."' },
      'odd-messages-other-message-with-call': { messages: 'answer "Done."' },
      'odd-chat-object-repeated': { chat: 'answer "Done."' },
      'odd-chat-call-without-list': { chat: 'answer "Done."' },
      'odd-chat-content-in-list': { chat: 'answer "Done."' },
      'odd-chat-content-as-object': { chat: 'answer "Done."' },
      'vendor-responses-custom-waits': { responses: 'answer "Done."' },
      'vendor-responses-shell-waits': { responses: 'answer "Done."' },
      'vendor-responses-local-shell-waits': { responses: 'answer "Done."' },
      'vendor-responses-apply-patch-waits': { responses: 'answer "Done."' },
      'vendor-responses-computer-waits': { responses: 'answer "Done."' },
      'vendor-responses-action-not-completed': { responses: 'answer "Done."' },
      'vendor-responses-shell-of-the-vendor': { responses: 'answer "Done."' },
      'vendor-responses-unknown-item-and-call': { responses: 'answer "Done."' },
      'vendor-responses-unknown-part-and-call': { responses: 'answer "Done."' },
      'vendor-responses-search-of-the-vendor': { responses: 'answer "Done."' },
      'vendor-messages-search-of-the-vendor': { messages: 'answer "Done."' },
      'vendor-messages-search-before-call': { messages: 'answer "Done."' },
      'vendor-messages-search-waits-for-call': { messages: 'answer "Done."' },
      'vendor-messages-search-cut-off': { messages: 'answer "Done."' },
      'vendor-messages-search-paused': { messages: 'answer "Done."' },
      'vendor-messages-call-paused': { messages: 'answer "Done."' },
      'vendor-messages-container': { messages: 'answer "Done."' },
      'vendor-messages-unknown-block-goes-back': { messages: 'answer "Done."' },
      'vendor-chat-custom-waits': { chat: 'answer "Done."' },
      'vendor-chat-unknown-call': { chat: 'invalidResponse' },
      'vendor-chat-unknown-part': { chat: 'answer "Done."' },
      'content-as-parts': { chat: 'invalidResponse' },
      'content-in-message-start': { messages: 'invalidResponse' },
      'flood-endless-nonsense': { messages: 'invalidResponse' },
      'usage-null': { messages: 'invalidResponse' },
      'usage-empty': { responses: 'invalidResponse', messages: 'invalidResponse' },
      'usage-partial': { responses: 'invalidResponse', messages: 'invalidResponse' },
      'usage-nulls': { responses: 'invalidResponse', messages: 'invalidResponse' },
      'usage-text': all('invalidResponse'),
      'usage-absent': { messages: 'invalidResponse' },
      'chat-tool-index-missing': { chat: 'answer "Done."' },
      'chat-tool-index-and-id-missing': { chat: 'answer "Done."' },
      'chat-tool-arguments-object': { chat: 'answer "Done."' },
      'chat-tool-name-later': { chat: 'invalidResponse' },
      'chat-tool-function-call': { chat: 'answer "Done."' },
      'messages-tool-id-missing': { messages: 'answer "Done."' },
      'messages-tool-no-block-stop': { messages: 'invalidResponse' },
      'responses-tool-id-missing': { responses: 'answer "Done."' },
      'responses-tool-index-missing': { responses: 'answer "Done."' },
    },
  },
];
