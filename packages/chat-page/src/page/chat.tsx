import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fromEvent, map, startWith, Subject } from 'rxjs';
import { approving$ } from './approving.js';
import { Composer } from './composer.js';
import { conversation$ } from './conversation.js';
import { askedIn, type Command, type Conversation } from './conversation-state.js';
import { newId, useLatest, useWindowEvent } from './hooks.js';
import { MessageView } from './message-view.js';
import {
  type Actions,
  ActionsContext,
  focusMessage,
  Icon,
  Problem,
  QuietButton,
  Working,
} from './pieces.js';
import { Bubble } from './question.js';
import { textPart } from './requests.js';
import type { Server } from './server.js';
import type { Settings } from './settings.js';
import type { downloadMarkdown } from './to-markdown.js';
import { titleOfTool, ToolsContext, type ToolTitles } from './tools.js';
import { filesIn, isQuestion, plainTextOf, type UiMessage } from './ui-message.js';
import { draftsIn, tabStorage } from './unsent.js';

interface ChatProps {
  readonly id: string;
  readonly name: string;
  /** Of the conversation. */
  readonly title: string;
  readonly settings: Settings;
  /** The chosen model. */
  readonly model: string | undefined;
  readonly isNew: boolean;
  readonly server: Server;
  /** Called when what the list shows of the conversation may have changed: nothing if it does not exist yet, or no longer. */
  readonly changed: (chat: ChangedChat | undefined) => void;
}

export interface ChangedChat {
  readonly id: string;
  readonly title: string | undefined;
  /** Its first question. */
  readonly question: string;
}

/** Whether the tab is shown. */
const isVisible$ = fromEvent(document, 'visibilitychange').pipe(
  startWith(undefined),
  map(() => document.visibilityState === 'visible'),
);

/** A conversation, with the field for messages. */
export const Chat = ({ id, name, title, settings, model, isNew, server, changed }: ChatProps) => {
  const command$ = useMemo(() => new Subject<Command>(), []);
  const chosen = useRef(model);
  chosen.current = model;
  const withModel = <Body extends object>(body: Body) => ({
    ...body,
    ...(chosen.current && { model: chosen.current }),
  });
  const asking = useMemo(
    (): Server => ({
      ...server,
      ask$: (chatId, body) => server.ask$(chatId, withModel(body)),
      settle$: (chatId, body) => server.settle$(chatId, withModel(body)),
    }),
    [],
  );
  const tools = useContext(ToolsContext);
  const drafts = useMemo(() => draftsIn(tabStorage()), []);
  const state = useLatest(
    () => conversation$(id, { server: asking, newId, drafts, isVisible$ }, command$),
    [],
  );
  const [spoken, setSpoken] = useState('');
  const send = (command: Command) => {
    command$.next(command);
  };
  const latest = useRef(state);
  latest.current = state;
  const actions = useMemo(
    (): Actions => ({
      send,
      announce: setSpoken,
      settings,
      ...(settings.tab !== undefined && { tab: `${settings.tab}#${id}` }),
      rate$: (answerId, isGood) => server.rate$(id, answerId, isGood),
      decide$: (approval, verdict) =>
        approving$({ server, state: () => latest.current }, approval, verdict),
    }),
    [],
  );
  const isBusy = state?.status === 'answering';
  useWindowEvent('keydown', (event) => {
    if (event.key === 'Escape' && isBusy && !event.defaultPrevented) send({ type: 'stop' });
  });
  const messages = state?.messages ?? [];
  const unsent = state?.unsent ?? [];
  const [first = unsent[0]] = messages;
  useEffect(() => {
    if (state === undefined || state.status === 'loading') return;
    changed(first && { id, title: state.title, question: plainTextOf(first) });
  }, [state?.status, state?.title, state?.changes, first === undefined]);
  const asked = state && askedIn(state);
  const blocked = blockedBy(state, tools);
  const isSending = isBusy && state.sending !== undefined;
  const isLost = state?.isReconnecting === true;
  const withFile = messages.findLast((it) => isQuestion(it) && filesIn(it).length > 0)?.id;
  const list = useStickyScroll([state]);
  return (
    <ActionsContext.Provider value={actions}>
      <div class="messages" ref={list.ref} onScroll={list.onScroll} tabIndex={-1}>
        <div class="column">
          {messages.length + unsent.length === 0 && (isNew || state?.status === 'ready') && (
            <div class="welcome">
              <h2>{name}</h2>
              <p>
                Ask anything.{' '}
                <span class="keys">
                  Enter sends, Shift+Enter starts a new line, Esc stops the answer.
                </span>
              </p>
              <Starters questions={settings.starters} send={send} />
            </div>
          )}
          {messages.map((message, at) => (
            <MessageView
              // A question keeps its place and the focus when another version of it is shown.
              key={isQuestion(message) ? at : message.id}
              message={message}
              versions={state?.branches[message.id]}
              isLast={!isSending && at === messages.length - 1}
              isBusy={isBusy}
              blocked={blocked}
              isEdited={state?.editing === message.id}
              withFile={withFile}
            />
          ))}
          {unsent.map((message) => (
            <UnsentView
              key={`unsent ${message.id}`}
              message={message}
              isSending={isSending && !isLost && state.sending.id === message.id}
              blocked={isLost ? undefined : blocked}
            />
          ))}
          {isBusy && !isLost && (isSending || messages.at(-1)?.role === 'user') && <Working />}
          {state?.steering.map((text, at) => (
            <div key={at} class="question waiting">
              <div class="bubble">
                <p>{text}</p>
              </div>
              <small>Waits for the next step of the answer</small>
            </div>
          ))}
          {state?.problem !== undefined && (
            <Problem text={state.problem.text} {...retryOf(state, send)} />
          )}
        </div>
      </div>
      {!list.isAtEnd && (
        <button type="button" class="latest" onClick={list.toEnd}>
          <Icon name="down" /> Latest
        </button>
      )}
      <p class="connection" role="status">
        {isLost ? 'Connection lost. Reconnecting…' : elsewhere[state?.elsewhere ?? 'none']}
      </p>
      <Announcer state={state} spoken={spoken} setSpoken={setSpoken} />
      <Composer isBusy={isBusy} isAsked={asked !== undefined} send={send} />
      <div class="below">
        {settings.footer !== undefined && <p>{settings.footer}</p>}
        {messages.length > 0 && !isBusy && settings.tab === undefined && (
          <button
            type="button"
            class="quiet"
            onClick={() => void download(title, messages, tools).catch(reportError)}
          >
            Export as Markdown
          </button>
        )}
      </div>
    </ActionsContext.Provider>
  );
};

/** Questions that begin a conversation. */
const Starters = (props: {
  readonly questions: readonly string[];
  readonly send: (command: Command) => void;
}) =>
  props.questions.length === 0 ? null : (
    <ul class="starters" aria-label="Questions to begin with">
      {props.questions.map((question) => (
        <li key={question}>
          <button
            type="button"
            onClick={() => {
              props.send({ type: 'ask', parts: [textPart(question)] });
              focusMessage();
            }}
          >
            {question}
          </button>
        </li>
      ))}
    </ul>
  );

/** Few people export a conversation. */
const download = async (...given: Parameters<typeof downloadMarkdown>): Promise<void> => {
  const { downloadMarkdown: save } = await import('./to-markdown.js');
  save(...given);
};

const elsewhere = {
  none: '',
  changed: 'This conversation has changed in another tab. Finish your edit to see it.',
  deleted: 'This conversation was deleted in another tab. Your next message starts it again.',
};

/** Why the conversation cannot be changed now. */
const blockedBy = (state: Conversation | undefined, tools: ToolTitles): string | undefined => {
  if (state?.editing !== undefined) return 'Send or cancel your edit first.';
  if (state?.status !== 'answering') return undefined;
  const asked = askedIn(state);
  return asked === undefined
    ? 'Wait until the answer is complete, or stop it.'
    : `The tool ${titleOfTool(tools, asked)} needs your approval first.`;
};

const retryOf = ({ problem }: Conversation, send: (command: Command) => void) => {
  const retry = problem?.retry;
  return retry === undefined ? {} : { retry: () => send(retry) };
};

/** A message that the server is not known to have. */
const UnsentView = (props: {
  readonly message: UiMessage;
  readonly isSending: boolean;
  /** Why it cannot be sent now. */
  readonly blocked: string | undefined;
}) => {
  const { message, isSending, blocked } = props;
  const send = useContext(ActionsContext)?.send;
  const act = (type: 'retry' | 'discard') => () => send?.({ type, messageId: message.id });
  return (
    <article class={isSending ? 'question' : 'question waiting'} aria-label="You">
      <h2 class="hidden">You</h2>
      <Bubble message={message} />
      {!isSending && (
        <div class="actions">
          <small role="alert">The server has not confirmed this message.</small>
          <QuietButton label="Try again" blocked={blocked} act={act('retry')} />
          <QuietButton label="Discard" blocked={undefined} act={act('discard')} />
        </div>
      )}
    </article>
  );
};

/** Keeps the end in view while it grows, or its window shrinks for a keyboard, unless the user has scrolled up. */
const useStickyScroll = (inputs: readonly unknown[]) => {
  const ref = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    const { current } = ref;
    if (current !== null) current.scrollTop = current.scrollHeight;
  };
  useEffect(() => {
    if (isAtEnd) {
      toEnd();
      // An edit may begin from the end, far below the message.
      showFocused('.edit');
    }
    // Another version may be longer: the buttons that show it stay in view.
    showFocused('.versions');
  }, inputs);
  useEffect(() => {
    if (!isAtEnd || ref.current === null) return undefined;
    const observer = new ResizeObserver(() => {
      toEnd();
      showFocused('.messages :is(input, textarea, select)');
    });
    observer.observe(ref.current);
    return () => {
      observer.disconnect();
    };
  }, [isAtEnd]);
  const onScroll = () => {
    const { current } = ref;
    if (current === null) return;
    setAtEnd(current.scrollHeight - current.scrollTop - current.clientHeight < 80);
  };
  return { ref, isAtEnd, toEnd, onScroll };
};

/** Scrolls to what has the focus, or to the place around it. */
const showFocused = (place: string): void => {
  document.activeElement?.closest(place)?.scrollIntoView({ block: 'nearest' });
};

/** Reports to screen readers, politely, what happens to an answer: not each piece of it. */
const Announcer = (props: {
  readonly state: Conversation | undefined;
  readonly spoken: string;
  readonly setSpoken: (text: string) => void;
}) => {
  const { state, spoken, setSpoken } = props;
  const wasBusy = useRef(false);
  const last = state?.messages.at(-1);
  const isBusy = state?.status === 'answering';
  const asked = state && askedIn(state);
  const tools = useContext(ToolsContext);
  useEffect(() => {
    if (isBusy)
      setSpoken(
        asked === undefined
          ? 'Answering.'
          : `The tool ${titleOfTool(tools, asked)} needs your approval.`,
      );
    else if (wasBusy.current && last?.role === 'assistant') setSpoken(spokenEnd(last));
    wasBusy.current = isBusy;
  }, [isBusy, asked]);
  return (
    <div class="hidden" aria-live="polite" role="log" aria-label="Progress">
      {spoken}
    </div>
  );
};

const spokenEnd = (message: UiMessage): string =>
  message.end?.error === undefined ? plainTextOf(message) : 'The answer failed.';
