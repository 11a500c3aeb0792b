// A script of its own for pages of other sites: without imports, and with nothing global but its element.
(() => {
  const name = 'millrace-chat';
  if (customElements.get(name) !== undefined) return;

  // A sheet, because the policy of the site may forbid inline styles.
  const style = new CSSStyleSheet();
  style.replaceSync(
    ':host { display: block; height: 600px } :host([hidden]) { display: none } ' +
      'iframe { display: block; width: 100%; height: 100%; border: 0 }',
  );

  /** The fewest rights with which the page works. The tabs that it opens have no sandbox: users decide there. */
  const rights =
    'allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox';

  /** `<millrace-chat src title theme>`: the chat page of another site in a frame. CSS sets its size. */
  class MillraceChat extends HTMLElement {
    static readonly observedAttributes = ['src', 'title', 'theme'];
    readonly #frame = document.createElement('iframe');
    readonly #root = this.attachShadow({ mode: 'open' });

    connectedCallback(): void {
      this.#frame.setAttribute('sandbox', rights);
      this.#frame.allow = 'clipboard-write';
      this.#frame.referrerPolicy = 'no-referrer';
      this.#show();
      this.#root.adoptedStyleSheets = [style];
      this.#root.replaceChildren(this.#frame);
    }

    attributeChangedCallback(): void {
      // Before that, each attribute would load the page again.
      if (this.#frame.isConnected) this.#show();
    }

    #show(): void {
      this.#frame.title = this.getAttribute('title') ?? 'Chat';
      const address = addressOf(this.getAttribute('src') ?? '', this.getAttribute('theme'));
      if (this.#frame.src !== address) this.#frame.src = address;
    }
  }

  /** The address of the frame: an empty page for one that would run a script in the page around it. */
  const addressOf = (src: string, theme: string | null): string => {
    if (src === '' || !URL.canParse(src, document.baseURI)) return 'about:blank';
    const url = new URL(src, document.baseURI);
    if (!/^https?:$/u.test(url.protocol)) return 'about:blank';
    if (theme !== null) url.searchParams.set('theme', theme);
    return url.href;
  };

  customElements.define(name, MillraceChat);
})();
