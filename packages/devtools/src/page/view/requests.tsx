// The prompt of each request, the news in it, and its answer.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { attemptsOf, curlOf, curlOfExchange, wayOf } from '../model/curl.js';
import { anyFields, fieldsOf, tokensIn } from '../model/read-event.js';
import {
  contentOf,
  type ModelRequest,
  modelOf,
  rawAnswer,
  rawRequest,
  type RequestMessage,
  type RequestView,
  viewOf,
  withoutAnswer,
} from '../model/requests.js';
import type { Exchange } from '../protocol.js';
import { withoutKeys } from '../secrets.js';
import { LongText } from './chat.js';
import { Words } from './difference.js';
import { JsonTree } from './json-tree.js';
import type { DiagramRun } from './rows.js';
import { counted, countText, selectCall, useDevtools } from './state.js';

/** The messages, or tools, that are shown together. */
const page = 30;
/** The buttons of requests. */
const shownRequests = 7;

export const Requests = ({ of }: { readonly of: DiagramRun | undefined }) => {
  const { ui } = useDevtools();
  const list = of?.run.requests.list ?? [];
  const found = list.findIndex(({ position }) => position === ui.request);
  const index = found === -1 ? list.length - 1 : found;
  const request = list[index];
  if (request === undefined) return <p class="empty">No request to a model yet.</p>;
  return (
    <div class="requests" data-testid="requests">
      <Choice list={list} index={index} />
      <Request key={`${of?.id ?? ''} ${request.position}`} request={request} />
    </div>
  );
};

const nameOf = ({ turn, phase, agent, depth }: ModelRequest): string =>
  `${depth > 0 ? `${agent} ` : ''}${phase ?? 'Turn'} ${turn}`;

/** The requests around the shown one. */
const Choice = (props: { readonly list: readonly ModelRequest[]; readonly index: number }) => {
  const { set } = useDevtools();
  const { list, index } = props;
  const first = Math.max(
    0,
    Math.min(index - Math.floor(shownRequests / 2), list.length - shownRequests),
  );
  const step = (label: string, to: number) => (
    <button
      type="button"
      disabled={list[to] === undefined}
      aria-label={`${label} request`}
      onClick={() => set({ request: list[to]?.position })}
    >
      {label === 'Previous' ? '‹' : '›'}
    </button>
  );
  return (
    <nav class="actions choice" aria-label="Requests">
      {step('Previous', index - 1)}
      {list.slice(first, first + shownRequests).map((one, at) => (
        <button
          key={one.position}
          type="button"
          aria-current={first + at === index}
          onClick={() => set({ request: one.position })}
        >
          {nameOf(one)}
        </button>
      ))}
      {step('Next', index + 1)}
      <span class="ms">
        {index + 1} of {list.length}
      </span>
    </nav>
  );
};

const Request = ({ request }: { readonly request: ModelRequest }) => {
  // An event does not change, but its answer and the request that layers send come later.
  const view = useMemo(() => viewOf(request), [request, request.sent]);
  const { usage } = request.answer === undefined ? {} : anyFields(request.answer.event);
  const tokens = tokensIn(usage);
  return (
    <article aria-label={nameOf(request)}>
      <h2>
        {nameOf(request)}
        <small>
          {' '}
          {[
            request.agent,
            modelOf(request),
            usage === undefined
              ? undefined
              : `${countText(tokens.input + tokens.cached)} in, ${countText(tokens.output)} out`,
          ]
            .filter(Boolean)
            .join(' · ')}
        </small>
      </h2>
      {request.before !== undefined && <p class="since">{changesOf(view, request.before)}</p>}
      {request.sent !== undefined && (
        <p class="since">
          Layers, or what the model supports, have changed the request of the event: this is what
          the model got.
        </p>
      )}
      <Section title="System prompt" isNew={view.systemBefore !== undefined} isOpen>
        <System view={view} />
      </Section>
      <Messages view={view} />
      <Tools view={view} />
      {view.options.length > 0 && (
        <Section
          title={`Options (${view.options.length})`}
          isNew={view.options.some((it) => it.isNew)}
        >
          <dl class="facts">
            {view.options.map(({ name, value }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </Section>
      )}
      <Section title="Answer" isOpen>
        <Answer request={request} />
      </Section>
      <Raw request={request} />
    </article>
  );
};

const changesOf = (view: RequestView, before: ModelRequest): string => {
  const added = view.messages.filter(({ isNew }) => isNew).length;
  const tools = view.tools.filter(({ isNew }) => isNew).length;
  const parts = [
    counted(added, 'new message'),
    ...(view.removed.length > 0 ? [`${view.removed.length} removed`] : []),
    ...(view.systemBefore === undefined ? [] : ['another system prompt']),
    ...(tools > 0 ? [counted(tools, 'new or changed tool')] : []),
    ...(view.removedTools.length > 0
      ? [`${counted(view.removedTools.length, 'tool')} removed`]
      : []),
  ];
  return `Since ${nameOf(before)}: ${parts.join(', ')}.`;
};

const Section = (props: {
  readonly title: string;
  readonly isNew?: boolean;
  readonly isOpen?: boolean;
  readonly children: ComponentChildren;
}) => {
  const [isOpen, setOpen] = useState(props.isOpen === true);
  return (
    <section class="section">
      <h3>
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? '▾' : '▸'} {props.title}
        </button>
        {props.isNew === true && <span class="status held">new</span>}
      </h3>
      {isOpen && props.children}
    </section>
  );
};

const System = ({ view: { system, systemBefore } }: { readonly view: RequestView }) => {
  if (systemBefore !== undefined) return <Words left={systemBefore} right={system} />;
  return system === '' ? <p class="empty">None.</p> : <LongText text={system} />;
};

const Messages = ({ view }: { readonly view: RequestView }) => {
  const { messages, same, removed } = view;
  const [isWhole, setWhole] = useState(same === 0);
  const [limit, setLimit] = useState(page);
  const own = isWhole ? messages : messages.slice(same);
  const shown = own.slice(-limit);
  return (
    <Section title={`Messages (${messages.length})`} isNew={messages.some((it) => it.isNew)} isOpen>
      {same > 0 && (
        <button
          type="button"
          class="more"
          aria-expanded={isWhole}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? 'Show only what is new' : `Show ${counted(same, 'message')} as before`}
        </button>
      )}
      {own.length > shown.length && (
        <button type="button" class="more" onClick={() => setLimit(limit + page)}>
          {own.length - shown.length} earlier
        </button>
      )}
      {shown.map((message, index) => (
        <MessageView key={message.id || index} message={message} />
      ))}
      {removed.slice(-page).map((message) => (
        <MessageView key={`removed ${message.id}`} message={message} isRemoved />
      ))}
    </Section>
  );
};

const looks: Readonly<Record<string, string>> = {
  user: 'user',
  assistant: 'assistant',
  tool: 'tool-part',
};

const MessageView = (props: { readonly message: RequestMessage; readonly isRemoved?: boolean }) => {
  const { session, ui, set } = useDevtools();
  const { id, role, text, isNew } = props.message;
  const callId = id.split('/')[0] ?? '';
  const shownId = ui.selected ?? session.calls[0]?.id;
  const isOther = callId !== shownId && session.callsById.has(callId);
  return (
    <article class={`part ${looks[role] ?? ''}${props.isRemoved === true ? ' discarded' : ''}`}>
      <header>
        <span class="role">{role}</span>
        {isNew && <span class="status held">new</span>}
        {props.isRemoved === true && <span class="status failed">removed</span>}
        {isOther && (
          <button type="button" class="link" onClick={() => set(selectCall(callId))}>
            Show its call
          </button>
        )}
      </header>
      <LongText text={text} />
    </article>
  );
};

const Tools = ({ view: { tools, removedTools } }: { readonly view: RequestView }) => {
  const [limit, setLimit] = useState(page);
  return (
    <Section
      title={`Tools (${tools.length})`}
      isNew={removedTools.length > 0 || tools.some((it) => it.isNew)}
    >
      {tools.length === 0 && <p class="empty">None.</p>}
      {tools.slice(0, limit).map(({ name, description, inputSchema, isNew }) => (
        <article key={name} class="part tool-part">
          <header>
            <code>{name}</code>
            {isNew && <span class="status held">new</span>}
          </header>
          <LongText text={description} />
          <JsonTree name="inputSchema" value={inputSchema} open={0} />
        </article>
      ))}
      {tools.length > limit && (
        <button type="button" class="more" onClick={() => setLimit(limit + page)}>
          {tools.length - limit} more
        </button>
      )}
      {removedTools.length > 0 && <p>Removed: {removedTools.join(', ')}</p>}
    </Section>
  );
};

const Answer = ({ request }: { readonly request: ModelRequest }) => {
  const { answer } = request;
  if (answer === undefined) return <p class="empty">{withoutAnswer(request)}</p>;
  const text = withoutKeys(contentOf(fieldsOf(anyFields(answer.event)['message'])));
  return (
    <div class="part assistant">
      <LongText text={text} />
    </div>
  );
};

/** The exchanges with the provider for a request, if the devtools have seen them. */
const useExchanges = ({ markId, isOver, failure }: ModelRequest): readonly Exchange[] => {
  const { client, send } = useDevtools();
  const [list, setList] = useState<readonly Exchange[]>([]);
  useEffect(() => {
    return markId === undefined ? undefined : send(client.exchanges$(markId), setList);
  }, [markId, isOver, failure]);
  return list;
};

/** The request and the answer as they were sent, or as JSON, to read and to copy. The server removes keys from exchanges. */
const Raw = ({ request }: { readonly request: ModelRequest }) => {
  const list = useExchanges(request);
  const sent = list.at(-1);
  const { response } = sent ?? {};
  const attempts = attemptsOf(list);
  const hasAnswer = attempts.length > 0 || request.answer !== undefined;
  const whole = sent?.omitted === 0 ? sent : undefined;
  const asked = () => sent?.body ?? rawRequest(request);
  const answer = () => response?.body ?? rawAnswer(request) ?? '';
  const curl = () => (whole === undefined ? curlOf(request) : curlOfExchange(whole));
  const of = [request, request.sent, request.answer, sent];
  const note = (text: unknown, omitted = 0) => (
    <p class="ms">
      {String(text)}
      {omitted > 0 && ` · ${omitted} more are not kept`}
    </p>
  );
  return (
    <>
      <div class="actions">
        <CopyButton label="Copy as curl" text={curl} />
        <CopyButton label="Copy request" text={asked} />
        {hasAnswer && <CopyButton label="Copy answer" text={answer} />}
      </div>
      <Section title="Raw request">
        {sent !== undefined && note(wayOf(list), sent.omitted)}
        <RawText text={asked} of={of} />
      </Section>
      {hasAnswer && (
        <Section title="Raw answer">
          {attempts.map((attempt, index) => (
            <>
              {note(attempt.text, attempt.omitted)}
              {index < list.length - 1 && <RawText text={() => attempt.body} of={[attempt.body]} />}
            </>
          ))}
          <RawText text={answer} of={of} />
        </Section>
      )}
      <Section title="curl">
        {note(
          whole === undefined
            ? "The same prompt in the format of OpenAI's chat completions. Set BASE_URL and API_KEY."
            : 'The request as it was sent. Set API_KEY.',
        )}
        <RawText text={curl} of={of} />
      </Section>
    </>
  );
};

/** Makes its string once for each state of what it is of. */
const RawText = (props: { readonly text: () => string; readonly of: readonly unknown[] }) => {
  const text = useMemo(props.text, props.of);
  return (
    <div class="raw">
      <LongText text={text} />
    </div>
  );
};

export const CopyButton = (props: { readonly label: string; readonly text: () => string }) => {
  const { session, set } = useDevtools();
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard.writeText(props.text()).then(
      () => setCopied(true),
      () => {
        session.take({ line: 'notice', text: 'The browser refuses to copy.' });
        set({});
      },
    );
  };
  return (
    <button type="button" onClick={copy}>
      {isCopied ? `${props.label}: copied` : props.label}
    </button>
  );
};
