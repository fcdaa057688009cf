// The page at /: a conversation, and the server's metrics. What comes from the model or the server goes in as text, never as HTML.
'use strict';

const $ = id => document.getElementById(id);
let key = sessionStorage.getItem('llmc-key') || '';
let messages = [];   // {role, content}, without the system prompt
let answering = null; // stops the answer that is under way

// ---- asking the server

function askKey() {
  const dialog = $('key-dialog');
  if (!dialog.open)
    dialog.showModal();
  return new Promise((resolve, reject) => dialog.addEventListener('close', () => {
    if (!$('key').value)
      reject(new Error('this server wants a key'));
    key = $('key').value;
    $('key').value = '';
    sessionStorage.setItem('llmc-key', key);
    resolve();
  }, {once: true}));
}

async function ask(path, options = {}) {
  for (;;) {
    const headers = {...options.headers};
    if (key)
      headers.Authorization = 'Bearer ' + key;
    const response = await fetch(path, {...options, headers});
    if (response.status === 401) {
      await askKey();
      continue;
    }
    if (!response.ok) {
      const body = await response.json().catch(() => null);
      throw new Error(body?.error?.message ?? 'status ' + response.status);
    }
    return response;
  }
}

// The data of a stream's events, as they come.
async function* events(response) {
  let rest = '';
  for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();;) {
    const {done, value} = await reader.read();
    if (done)
      throw new Error('the answer was cut off');
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      if (part === 'data: [DONE]')
        return;
      if (part.startsWith('data: '))
        yield JSON.parse(part.slice(6));
    }
  }
}

// ---- the conversation

function element(parent, name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined)
    made.textContent = text;
  if (className)
    made.className = className;
  return parent.appendChild(made);
}

function show(role, text) {
  const article = element($('log'), 'article', undefined, role);
  element(article, 'h2', role === 'user' ? 'You' : 'Model');
  const paragraph = element(article, 'p', text);
  $('log').scrollTop = $('log').scrollHeight;
  return {article, paragraph};
}

function fail(message) {
  $('error').hidden = !message;
  $('error').textContent = message;
}

function requestBody() {
  const system = $('system').value.trim();
  const body = {
    messages: [...(system ? [{role: 'system', content: system}] : []), ...messages],
    stream: true, stream_options: {include_usage: true},
  };
  if ($('temperature').value !== '')
    body.temperature = Number($('temperature').value);
  if ($('most').value !== '')
    body.max_tokens = Number($('most').value);
  return body;
}

const seconds = ms => ms < 1000 ? Math.round(ms) + ' ms' : (ms / 1000).toFixed(1) + ' s';

// Times of an answer: from sending to its first piece, and the tokens of the pieces behind that.
class Speed {
  sent = performance.now();
  first = 0;
  last = 0;
  piece() {
    this.last = performance.now();
    this.first ||= this.last;
    $('speed').textContent = 'first token ' + seconds(this.first - this.sent);
  }
  end(usage) {
    const tokens = usage?.completion_tokens;
    if (tokens > 1 && this.last > this.first)
      $('speed').textContent += ', ' + ((tokens - 1) * 1000 / (this.last - this.first)).toFixed(1) + ' tokens/s, ' + tokens + ' tokens';
  }
}

async function receive(response, shown, speed) {
  const log = $('log');
  let thought = null;
  for await (const event of events(response)) {
    if (event.error)
      throw new Error(event.error.message);
    if (event.usage)
      speed.end(event.usage);
    const delta = event.choices[0]?.delta;
    if (!delta?.content && !delta?.reasoning_content)
      continue;
    speed.piece();
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40; // who has scrolled up stays there
    if (delta.reasoning_content) {
      if (!thought) {
        thought = element(shown.article, 'p', '', 'thought');
        shown.article.insertBefore(thought, shown.paragraph);
      }
      thought.append(delta.reasoning_content);
    }
    if (delta.content)
      shown.paragraph.append(delta.content);
    if (atEnd)
      log.scrollTop = log.scrollHeight;
  }
}

async function send() {
  const text = $('text').value;
  if (answering || !text.trim())
    return;
  fail('');
  $('text').value = '';
  messages.push({role: 'user', content: text});
  const asked = show('user', text), shown = show('assistant', '');
  answering = new AbortController();
  busy(true);
  $('speed').textContent = '';
  try {
    const speed = new Speed();
    const response = await ask('/v1/chat/completions', {
      method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(requestBody()), signal: answering.signal,
    });
    await receive(response, shown, speed);
  } catch (error) {
    if (error.name !== 'AbortError')
      fail(error.message);
  }
  answering = null;
  busy(false);
  const answer = shown.paragraph.textContent;
  if (answer) {
    messages.push({role: 'assistant', content: answer});
  } else { // nothing has come: the question goes back to where it was written
    messages.pop();
    asked.article.remove();
    shown.article.remove();
    $('text').value ||= text;
  }
  $('text').focus();
}

function busy(on) {
  $('send').disabled = on;
  $('stop').disabled = !on;
  $('clear').disabled = on;
  $('log').setAttribute('aria-busy', on);
}

$('ask').addEventListener('submit', event => {
  event.preventDefault();
  send();
});
$('text').addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
$('stop').addEventListener('click', () => answering?.abort());
document.addEventListener('keydown', event => {
  if (event.key === 'Escape' && !$('key-dialog').open)
    answering?.abort();
});
$('clear').addEventListener('click', () => {
  messages = [];
  $('log').replaceChildren();
  $('speed').textContent = '';
  fail('');
  $('text').focus();
});

// ---- the metrics

// {name{labels}: value} of Prometheus' text.
function samples(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const space = line.lastIndexOf(' ');
    if (!line.startsWith('#') && space > 0)
      found.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return found;
}

// The bound of a histogram's bucket below which `part` of its values lie; undefined: there are none.
function quantile(now, name, part) {
  const buckets = [...now].filter(([key]) => key.startsWith(name + '_bucket{'));
  const total = buckets.at(-1)?.[1];
  const bucket = total && buckets.find(([, count]) => count >= part * total);
  return bucket && Number(bucket[0].split('"')[1].replace('+Inf', 'Infinity'));
}

const below = value => value === undefined ? '–' : value === Infinity ? 'over 2 min' : '≤ ' + seconds(value * 1000);
let before = null, rates = [], timer = 0;

function tiles(now, rate) {
  const get = name => now.get('llmc_' + name) ?? 0;
  const percent = (part, whole) => whole ? (100 * part / whole).toFixed(0) + ' %' : '–';
  return {
    'Answers under way': get('requests_running'),
    'Waiting': get('requests_waiting'),
    'Tokens a second': rate === undefined ? '–' : rate.toFixed(1),
    'KV cache in use': percent(get('kv_use_ratio'), 1),
    'Prompt found in cache': percent(get('prefix_hit_tokens_total'), get('prompt_tokens_total')),
    'First token, median': below(quantile(now, 'llmc_time_to_first_token_seconds', 0.5)),
    'First token, 99 %': below(quantile(now, 'llmc_time_to_first_token_seconds', 0.99)),
    'Next token, median': below(quantile(now, 'llmc_inter_token_seconds', 0.5)),
    'Next token, 99 %': below(quantile(now, 'llmc_inter_token_seconds', 0.99)),
    'Preempted': get('preemptions_total'),
    'Connections': get('http_connections'),
  };
}

function draw(now, rate) {
  $('tiles').replaceChildren();
  for (const [name, value] of Object.entries(tiles(now, rate))) {
    const tile = element($('tiles'), 'div');
    element(tile, 'dt', name);
    element(tile, 'dd', value);
  }
  if (rate !== undefined)
    rates = [...rates, rate].slice(-120);
  const most = Math.max(1, ...rates);
  $('line').setAttribute('points', rates.map((r, i) => (120 - rates.length + i) + ',' + (29 - 28 * r / most).toFixed(2)).join(' '));
  $('counters').replaceChildren();
  for (const [name, value] of now) {
    if (name.includes('_bucket{'))
      continue;
    const row = element($('counters'), 'tr');
    element(row, 'td', name);
    element(row, 'td', value);
  }
}

async function watch() {
  clearTimeout(timer);
  if ($('metrics').hidden)
    return;
  try {
    const now = samples(await (await ask('/metrics')).text()), time = performance.now();
    const tokens = now.get('llmc_generated_tokens_total') ?? 0;
    draw(now, before ? (tokens - before.tokens) * 1000 / (time - before.time) : undefined);
    before = {tokens, time};
  } catch (error) { // the server is gone, say: its last numbers stay, and it is asked again
    before = null;
  }
  clearTimeout(timer);
  timer = setTimeout(watch, 1000);
}

// ---- both views

function turn() {
  const metrics = location.hash === '#metrics';
  for (const [view, on] of [['chat', !metrics], ['metrics', metrics]]) {
    $(view).hidden = !on;
    if (on)
      $('to-' + view).setAttribute('aria-current', 'page');
    else
      $('to-' + view).removeAttribute('aria-current');
  }
  if (metrics)
    watch();
  else
    $('text').focus();
}

window.addEventListener('hashchange', turn);
turn();
ask('/v1/models').then(response => response.json()).then(models => {
  $('model').textContent = document.title = models.data[0].id;
}).catch(error => fail(error.message));
