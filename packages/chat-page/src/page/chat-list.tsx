import { useEffect, useRef, useState } from 'preact/hooks';
import { type ChatEntry, withTitle } from './chats.js';
import { Icon } from './pieces.js';

interface ChatListProps {
  readonly name: string;
  readonly chats: readonly ChatEntry[];
  readonly current: string;
  readonly open: (id: string) => void;
  readonly create: () => void;
  readonly change: (update: (chats: readonly ChatEntry[]) => readonly ChatEntry[]) => void;
}

/** The conversations of this browser. */
export const ChatList = ({ name, chats, current, open, create, change }: ChatListProps) => {
  const [renamed, setRenamed] = useState<string>();
  const remove = ({ id, title }: ChatEntry) => {
    if (!confirm(`Remove “${title}” from the list? The server keeps the conversation.`)) return;
    change((list) => list.filter((chat) => chat.id !== id));
    if (id === current) create();
  };
  return (
    <nav aria-label="Conversations">
      <header>
        <span class="brand">{name}</span>
        <button type="button" class="new" onClick={create}>
          <Icon name="plus" /> New chat
        </button>
      </header>
      <ul>
        {chats.map((chat) => (
          <li key={chat.id} class={chat.id === current ? 'current' : undefined}>
            {renamed === chat.id ? (
              <TitleField
                title={chat.title}
                end={(title) => {
                  setRenamed(undefined);
                  if (title !== '') change((list) => withTitle(list, chat.id, title));
                }}
              />
            ) : (
              <>
                <a
                  href={`#${chat.id}`}
                  aria-current={chat.id === current ? 'page' : undefined}
                  onClick={(event) => {
                    event.preventDefault();
                    open(chat.id);
                  }}
                >
                  <span>{chat.title}</span>
                  <time dateTime={new Date(chat.at).toISOString()}>{shortTime(chat.at)}</time>
                </a>
                <button
                  type="button"
                  class="icon"
                  aria-label={`Rename ${chat.title}`}
                  title="Rename"
                  onClick={() => setRenamed(chat.id)}
                >
                  <Icon name="pencil" />
                </button>
                <button
                  type="button"
                  class="icon"
                  aria-label={`Remove ${chat.title}`}
                  title="Remove"
                  onClick={() => remove(chat)}
                >
                  <Icon name="cross" />
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
};

const TitleField = (props: {
  readonly title: string;
  /** Called with the title, or with an empty string to leave it. */
  readonly end: (title: string) => void;
}) => {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return (
    <input
      ref={field}
      aria-label="Title"
      defaultValue={props.title}
      onBlur={(event) => props.end(event.currentTarget.value.trim())}
      onKeyDown={(event) => {
        if (event.key === 'Enter') props.end(event.currentTarget.value.trim());
        if (event.key === 'Escape') props.end('');
      }}
    />
  );
};

/** The time today, or the date. */
const shortTime = (at: number): string => {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { month: 'short', day: 'numeric' });
};

type Theme = 'light' | 'dark';

const themeKey = 'millrace.theme';

/** Switches between light and dark. Without a choice, the page follows the system. */
export const ThemeButton = () => {
  const [theme, setTheme] = useState(startTheme);
  const next = theme === 'dark' ? 'light' : 'dark';
  const change = () => {
    show(next);
    setTheme(next);
    try {
      localStorage.setItem(themeKey, next);
    } catch {
      // The choice lasts as long as the page.
    }
  };
  const label = `Use the ${next} theme`;
  return (
    <button type="button" class="icon" aria-label={label} title={label} onClick={change}>
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </button>
  );
};

const show = (theme: Theme): void => {
  document.documentElement.dataset['theme'] = theme;
};

const startTheme = (): Theme => {
  try {
    const chosen = localStorage.getItem(themeKey);
    if (chosen === 'dark' || chosen === 'light') {
      show(chosen);
      return chosen;
    }
  } catch {
    // Storage is forbidden.
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
};
