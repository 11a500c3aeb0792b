import { useEffect, useMemo, useState } from 'preact/hooks';
import { Subject, timer } from 'rxjs';
import { type ChangedChat, Chat } from './chat.js';
import { ChatList } from './chat-list.js';
import { chosenModelIn } from './chosen-model.js';
import { chats$, type ChatsCommand, isChatId, titleOf } from './chats.js';
import { newId, useLatest, useWindowEvent } from './hooks.js';
import { focusMessage, Icon } from './pieces.js';
import { ModelPicker } from './pickers.js';
import type { Server } from './server.js';
import type { Settings } from './settings.js';
import { ThemeButton } from './theme.js';
import { ToolsContext } from './tools.js';
import { tabStorage } from './unsent.js';

/** The page: the list of conversations, and the chosen one. Its id is the fragment of the URL. */
export const App = (props: {
  readonly server: Server;
  readonly name: string;
  readonly settings: Settings;
}) => {
  const { server, name, settings } = props;
  const { list, send, reportToOthers } = useChats(server);
  const [id, setId] = useState(() => idInUrl() ?? newId());
  const models = useMemo(() => chosenModelIn(tabStorage(), location.pathname, settings.models), []);
  const [model, setModel] = useState(models.read);
  const choose = (chosen: string) => {
    models.write(chosen);
    setModel(chosen);
  };
  const [isListOpen, setListOpen] = useState(false);
  const [shown, setShown] = useState<ChangedChat>();
  const tools = useLatest(() => server.tools$, []) ?? noTools;
  const known = list.chats.find((chat) => chat.id === id);
  const current = shown?.id === id ? shown : undefined;
  const title = known?.title ?? (current && (current.title ?? titleOf(current.question)));
  useWindowEvent('hashchange', () => {
    setListOpen(false);
    setId((before) => idInUrl() ?? (location.hash === '' ? newId() : before));
  });
  useWindowEvent('keydown', (event) => {
    if (event.key !== 'Escape' || !isListOpen) return;
    event.preventDefault();
    setListOpen(false);
  });
  useEffect(() => {
    document.title = title === undefined ? name : `${title} – ${name}`;
  }, [title]);
  const open = (chatId: string) => {
    if (idInUrl() === undefined) history.replaceState(null, '', `#${chatId}`);
    else location.hash = chatId;
    setListOpen(false);
    setId(chatId);
  };
  const changed = (chat: ChangedChat | undefined) => {
    setShown(chat);
    if (chat !== undefined && idInUrl() !== id) history.replaceState(null, '', `#${id}`);
    const isOpened = chat !== undefined && current === undefined;
    if (isOpened || (chat === undefined && known === undefined)) return;
    send({ type: 'load' });
    reportToOthers();
  };
  // The server lists a conversation once it has a message of it.
  const isMissing = title !== undefined && known === undefined && list.search === '';
  const added = isMissing ? [{ id, title, updatedAt: Date.now() }] : [];
  return (
    <div class={isListOpen ? 'app open' : 'app'}>
      <a
        class="skip"
        href="#message"
        onClick={(event) => {
          event.preventDefault();
          focusMessage();
        }}
      >
        Skip to the message field
      </a>
      <ChatList
        name={name}
        logo={settings.logo}
        agents={settings.agents}
        list={{ ...list, chats: [...added, ...list.chats] }}
        current={id}
        open={open}
        create={() => open(newId())}
        send={send}
        isFixed={settings.tab !== undefined}
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
          <ModelPicker models={settings.models} model={model} choose={choose} />
          {settings.tab === undefined && <ThemeButton />}
        </header>
        <ToolsContext.Provider value={tools}>
          <Chat
            key={id}
            id={id}
            name={name}
            title={title ?? name}
            settings={settings}
            model={model}
            isNew={title === undefined}
            server={server}
            changed={changed}
          />
        </ToolsContext.Provider>
      </main>
    </div>
  );
};

const noTools = {};

const pauseMs = 200;

/** The list of conversations. It is loaded again when other tabs change it, and when the user comes back to this one. */
const useChats = (server: Server) => {
  const command$ = useMemo(() => new Subject<ChatsCommand>(), []);
  const channel = useMemo(() => new BroadcastChannel('millrace.chats'), []);
  const send = (command: ChatsCommand) => {
    command$.next(command);
  };
  const load = () => send({ type: 'load' });
  const reportToOthers = () => channel.postMessage('changed');
  const options = { server, pause$: timer(pauseMs), changed: reportToOthers };
  const list = useLatest(() => chats$(options, command$), []);
  useEffect(() => {
    channel.addEventListener('message', load);
    return () => {
      channel.close();
    };
  }, []);
  useWindowEvent('focus', load);
  useWindowEvent('online', load);
  return { list: list ?? noChats, send, reportToOthers };
};

const noChats = { chats: [], search: '', isLoading: true };

const idInUrl = (): string | undefined => {
  const id = location.hash.slice(1);
  return isChatId(id) ? id : undefined;
};
