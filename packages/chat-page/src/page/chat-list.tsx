import { useEffect, useRef, useState } from 'preact/hooks';
import type { Chats, ChatsCommand } from './chats.js';
import { Icon } from './pieces.js';
import { AgentPicker } from './pickers.js';
import type { ChatSummary } from './server.js';
import type { Settings } from './settings.js';

interface ChatListProps {
  readonly name: string;
  readonly logo: string | undefined;
  readonly agents: Settings['agents'];
  readonly list: Chats;
  readonly current: string;
  readonly open: (id: string) => void;
  readonly create: () => void;
  readonly send: (command: ChatsCommand) => void;
  /** Whether conversations can only be opened. */
  readonly isFixed: boolean;
}

/** The conversations of the user. */
export const ChatList = ({
  name,
  logo,
  agents,
  list,
  current,
  open,
  create,
  send,
  isFixed,
}: ChatListProps) => {
  const { chats, search, next, isLoading, problem } = list;
  const createButton = useRef<HTMLButtonElement>(null);
  const remove = ({ id, title }: ChatSummary) => {
    if (!confirm(`Delete “${title}”? This cannot be undone.`)) return;
    send({ type: 'delete', id });
    if (id === current) create();
    else createButton.current?.focus();
  };
  return (
    <nav aria-label="Conversations">
      <header>
        <span class="brand">
          {logo !== undefined && <img src={logo} alt="" />}
          {name}
        </span>
        <AgentPicker agents={agents} />
        <button type="button" class="new" ref={createButton} onClick={create}>
          <Icon name="plus" /> New chat
        </button>
        <input
          type="search"
          aria-label="Search conversations"
          placeholder="Search"
          value={search}
          onInput={(event) => send({ type: 'search', text: event.currentTarget.value })}
        />
      </header>
      <ul>
        {chats.map((chat) => (
          <Entry
            key={chat.id}
            chat={chat}
            isCurrent={chat.id === current}
            isFixed={isFixed}
            open={() => open(chat.id)}
            rename={(title) => send({ type: 'rename', id: chat.id, title })}
            remove={() => remove(chat)}
          />
        ))}
        {next !== undefined && (
          <li>
            <More load={() => send({ type: 'more' })} shown={chats.length} />
          </li>
        )}
      </ul>
      <p class="notice" role="status">
        {search !== '' && !isLoading && chats.length === 0 && 'No conversations found.'}
      </p>
      {problem !== undefined && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
    </nav>
  );
};

const Entry = (props: {
  readonly chat: ChatSummary;
  readonly isCurrent: boolean;
  readonly isFixed: boolean;
  readonly open: () => void;
  readonly rename: (title: string) => void;
  readonly remove: () => void;
}) => {
  const { chat, isCurrent, isFixed, open, rename, remove } = props;
  const { title, updatedAt } = chat;
  const [isRenamed, setRenamed] = useState(false);
  const pencil = useRef<HTMLButtonElement>(null);
  const end = (changed: string) => {
    setRenamed(false);
    if (changed !== '' && changed !== title) rename(changed);
  };
  if (isRenamed) {
    return (
      <li>
        <TitleField
          title={title}
          end={end}
          leave={() => requestAnimationFrame(() => pencil.current?.focus())}
        />
      </li>
    );
  }
  return (
    <li class={isCurrent ? 'current' : undefined}>
      <a
        href={`./#${chat.id}`}
        aria-current={isCurrent ? 'page' : undefined}
        onClick={(event) => {
          event.preventDefault();
          open();
        }}
      >
        <span>{title}</span>
        <time dateTime={new Date(updatedAt).toISOString()}>{shortTime(updatedAt)}</time>
      </a>
      {!isFixed && (
        <>
          <button
            ref={pencil}
            type="button"
            class="icon"
            aria-label={`Rename ${title}`}
            title="Rename"
            onClick={() => setRenamed(true)}
          >
            <Icon name="pencil" />
          </button>
          <button
            type="button"
            class="icon"
            aria-label={`Delete ${title}`}
            title="Delete"
            onClick={remove}
          >
            <Icon name="bin" />
          </button>
        </>
      )}
    </li>
  );
};

const TitleField = (props: {
  readonly title: string;
  /** Called with the title, or with an empty string to leave it. */
  readonly end: (title: string) => void;
  /** Called when a key has ended it. */
  readonly leave: () => void;
}) => {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return (
    <input
      ref={field}
      aria-label="Title"
      maxLength={200}
      defaultValue={props.title}
      onBlur={(event) => props.end(event.currentTarget.value.trim())}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return;
        event.stopPropagation();
        if (event.key === 'Escape') event.currentTarget.value = props.title;
        event.currentTarget.blur();
        props.leave();
      }}
    />
  );
};

/** Loads earlier conversations when it is pressed, or scrolled to. */
const More = ({ load, shown }: { readonly load: () => void; readonly shown: number }) => {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) load();
    });
    if (button.current !== null) observer.observe(button.current);
    return () => {
      observer.disconnect();
    };
  }, [shown]);
  return (
    <button type="button" class="quiet" ref={button} onClick={load}>
      Show more
    </button>
  );
};

/** The time today, or the date. */
const shortTime = (at: number): string => {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { month: 'short', day: 'numeric' });
};
