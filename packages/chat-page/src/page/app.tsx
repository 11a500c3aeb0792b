import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Subject } from 'rxjs';
import { ChatList, ThemeButton } from './chat-list.js';
import { type ChatEntry, isChatId, readChats, withUse, writeChats } from './chats.js';
import { Composer } from './composer.js';
import { type Command, type Conversation, conversation$ } from './conversation.js';
import { newId, useLatest, useWindowEvent } from './hooks.js';
import { Bubble, MessageView } from './message-view.js';
import { ActionsContext, Icon, Problem, QuietButton, Working } from './pieces.js';
import type { Server } from './server.js';
import { isToolCall, plainTextOf, type UiMessage, waitingIn } from './ui-message.js';
import { draftsIn } from './unsent.js';

/** The page: the list of conversations, and the chosen one. Its id is the fragment of the URL. */
export const App = ({ server, name }: { readonly server: Server; readonly name: string }) => {
  const [chats, setChats] = useState(() => readChats(localStorage));
  const [id, setId] = useState(() => idInUrl() ?? newId());
  const [isListOpen, setListOpen] = useState(false);
  const title = chats.find((chat) => chat.id === id)?.title;
  useWindowEvent('hashchange', () => {
    setListOpen(false);
    setId((before) => idInUrl() ?? (location.hash === '' ? newId() : before));
  });
  useWindowEvent('keydown', (event) => {
    if (event.key !== 'Escape' || !isListOpen) return;
    event.preventDefault();
    setListOpen(false);
  });
  // Other tabs change the list, too.
  useWindowEvent('storage', () => setChats(readChats(localStorage)));
  useEffect(() => {
    document.title = title === undefined ? name : `${title} – ${name}`;
  }, [title]);
  const change = (update: (chats: readonly ChatEntry[]) => readonly ChatEntry[]) => {
    const next = update(readChats(localStorage));
    writeChats(localStorage, next);
    setChats(next);
  };
  const open = (chatId: string) => {
    if (idInUrl() === undefined) history.replaceState(null, '', `#${chatId}`);
    else location.hash = chatId;
    setListOpen(false);
    setId(chatId);
  };
  const use = (question: string) => {
    change((list) => withUse(list, { id, question, at: Date.now() }));
    if (idInUrl() !== id) history.replaceState(null, '', `#${id}`);
  };
  return (
    <div class={isListOpen ? 'app open' : 'app'}>
      <a class="skip" href="#message" onClick={focusMessage}>
        Skip to the message field
      </a>
      <ChatList
        name={name}
        chats={chats}
        current={id}
        open={open}
        create={() => open(newId())}
        change={change}
      />
      <div class="cover" onClick={() => setListOpen(false)} />
      <main>
        <header>
          <button
            type="button"
            class="icon menu"
            aria-label="Conversations"
            aria-expanded={isListOpen}
            onClick={() => setListOpen(!isListOpen)}
          >
            <Icon name="menu" />
          </button>
          <h1>{title ?? name}</h1>
          <ThemeButton />
        </header>
        <Chat key={id} id={id} name={name} isNew={title === undefined} server={server} use={use} />
      </main>
    </div>
  );
};

const idInUrl = (): string | undefined => {
  const id = location.hash.slice(1);
  return isChatId(id) ? id : undefined;
};

const focusMessage = (event: Event): void => {
  event.preventDefault();
  document.getElementById('message')?.focus();
};

// ---------------------------------------------------------------- a conversation

interface ChatProps {
  readonly id: string;
  readonly name: string;
  readonly isNew: boolean;
  readonly server: Server;
  /** Called when the user asks something. */
  readonly use: (question: string) => void;
}

const Chat = ({ id, name, isNew, server, use }: ChatProps) => {
  const command$ = useMemo(() => new Subject<Command>(), []);
  const state = useLatest(
    () => conversation$(id, { server, newId, drafts: draftsIn(sessionStorage) }, command$),
    [],
  );
  const send = (command: Command) => {
    const text = command.type === 'ask' ? plainTextOf({ ...noMessage, parts: command.parts }) : '';
    if (!/^(?:stop|load|discard)$/u.test(command.type)) use(text);
    command$.next(command);
  };
  const actions = useMemo(() => ({ send, decide$: server.decide$ }), []);
  const isBusy = state?.status === 'answering';
  useWindowEvent('keydown', (event) => {
    if (event.key === 'Escape' && isBusy && !event.defaultPrevented) send({ type: 'stop' });
  });
  const messages = state?.messages ?? [];
  const unsent = state?.unsent ?? [];
  const asked = messages.slice(-1).map(approvalIn)[0];
  const busy = !isBusy
    ? undefined
    : asked === undefined
      ? 'Wait until the answer is complete, or stop it.'
      : `The tool ${asked} needs your approval first.`;
  const isSending = isBusy && state.sending !== undefined;
  const isLost = state?.isReconnecting === true;
  const waiting = messages.slice(-1).flatMap(waitingIn)[0]?.toolName;
  const list = useStickyScroll([state]);
  return (
    <ActionsContext.Provider value={actions}>
      <div class="messages" ref={list.ref} onScroll={list.onScroll} tabIndex={-1}>
        <div class="column">
          {messages.length + unsent.length === 0 && (isNew || state?.status === 'ready') && (
            <div class="welcome">
              <h2>{name}</h2>
              <p>Ask anything. Enter sends, Shift+Enter starts a new line, Esc stops the answer.</p>
            </div>
          )}
          {messages.map((message, at) => (
            <MessageView
              key={message.id}
              message={message}
              isLast={!isSending && at === messages.length - 1}
              busy={busy}
            />
          ))}
          {unsent.map((message) => (
            <UnsentView
              key={`unsent ${message.id}`}
              message={message}
              isSending={isSending && !isLost && state.sending.id === message.id}
              blocked={
                waiting === undefined || message.kind === 'edit'
                  ? isLost
                    ? undefined
                    : busy
                  : `The tool ${waiting} needs its result first.`
              }
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
        {isLost ? 'Connection lost. Reconnecting…' : ''}
      </p>
      <Announcer state={state} />
      <Composer isBusy={isBusy} waiting={isBusy ? undefined : waiting} send={send} />
    </ActionsContext.Provider>
  );
};

const noMessage = { id: '', role: 'user' } as const;

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

/** Keeps the end in view while it grows, unless the user has scrolled up. */
const useStickyScroll = (inputs: readonly unknown[]) => {
  const ref = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    const { current } = ref;
    if (current !== null) current.scrollTop = current.scrollHeight;
  };
  useEffect(() => {
    if (isAtEnd) toEnd();
  }, inputs);
  const onScroll = () => {
    const { current } = ref;
    if (current === null) return;
    setAtEnd(current.scrollHeight - current.scrollTop - current.clientHeight < 80);
  };
  return { ref, isAtEnd, toEnd, onScroll };
};

/** Reports to screen readers, politely, what happens to an answer: not each piece of it. */
const Announcer = ({ state }: { readonly state: Conversation | undefined }) => {
  const wasBusy = useRef(false);
  const [text, setText] = useState('');
  const last = state?.messages.at(-1);
  const isBusy = state?.status === 'answering';
  const asked = isBusy && last !== undefined ? approvalIn(last) : undefined;
  useEffect(() => {
    if (isBusy)
      setText(asked === undefined ? 'Answering.' : `The tool ${asked} needs your approval.`);
    else if (wasBusy.current && last?.role === 'assistant') setText(spokenEnd(last));
    wasBusy.current = isBusy;
  }, [isBusy, asked]);
  return (
    <div class="hidden" aria-live="polite" role="log" aria-label="Progress">
      {text}
    </div>
  );
};

const approvalIn = ({ parts }: UiMessage): string | undefined =>
  parts.flatMap((part) => {
    if (part.type !== 'approval' || part.data.status !== 'requested') return [];
    const tool = parts.find(isToolCall(part.data.toolCallId));
    return tool === undefined || tool.state === 'running' ? [part.data.toolName] : [];
  })[0];

const spokenEnd = (message: UiMessage): string =>
  message.end?.error === undefined ? plainTextOf(message) : 'The answer failed.';
