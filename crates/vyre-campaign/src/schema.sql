-- The tables of campaigns, and the three functions that workers may call.
--
-- A campaign has device classes, and each class has every unit of the plan once: `span` cuts the numbers of the units into ranges, and
-- ranges of first runs never overlap, which a constraint sees to. A range is free (0), claimed (1) or done (2). Whoever claims one
-- holds it as long as it is heard from: leases are per worker, by the clock of this server, and by no other. Each time a range is handed
-- out or taken back its fence number grows, and an answer that does not have the number of today is late and changes nothing.
--
-- Locks are taken in one order, the worker's own row first and ranges then, and rows of others only where nobody holds them.

CREATE SCHEMA vyre;
REVOKE ALL ON SCHEMA vyre FROM PUBLIC;

-- The layout of all this. Another number is refused, by this program and by the functions.
CREATE TABLE vyre.about (layout int NOT NULL);
INSERT INTO vyre.about VALUES (1);

CREATE TABLE vyre.campaign (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  created timestamptz NOT NULL DEFAULT clock_timestamp(),
  cancelled timestamptz,
  -- What workers are told: suite, queries, tier, seed.
  spec jsonb NOT NULL,
  units bigint NOT NULL,
  -- Seconds after which a worker that is not heard from has lost its ranges.
  lease double precision NOT NULL,
  -- The share of units that a second worker runs.
  second double precision NOT NULL
);

CREATE TABLE vyre.section (
  campaign int NOT NULL REFERENCES vyre.campaign ON DELETE CASCADE,
  number int NOT NULL,
  -- Units before it, and its own.
  before bigint NOT NULL,
  units bigint NOT NULL,
  -- Cases of a unit.
  unit bigint NOT NULL,
  info text NOT NULL,
  PRIMARY KEY (campaign, number)
);

-- Device classes are numbers everywhere else. A class is of one device: the first that comes, the one that was named, or any.
CREATE TABLE vyre.class (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  campaign int NOT NULL REFERENCES vyre.campaign ON DELETE CASCADE,
  name text NOT NULL,
  backend text NOT NULL,
  any_device boolean NOT NULL,
  fingerprint text,
  version text,
  device text,
  forms text,
  secret bytea NOT NULL,
  swept timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The root, once a report has seen all of it.
  root bytea,
  UNIQUE (campaign, name)
);

CREATE TABLE vyre.worker (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class int NOT NULL REFERENCES vyre.class ON DELETE CASCADE,
  token text NOT NULL UNIQUE,
  name text NOT NULL,
  fingerprint text NOT NULL,
  caps text[] NOT NULL,
  began timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- 0 works, 1 has left, 2 is not believed.
  state smallint NOT NULL DEFAULT 0,
  claims bigint NOT NULL DEFAULT 0,
  units bigint NOT NULL DEFAULT 0,
  busy_ms bigint NOT NULL DEFAULT 0,
  late bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX worker_class ON vyre.worker (class);

CREATE TABLE vyre.span (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class int NOT NULL REFERENCES vyre.class ON DELETE CASCADE,
  lo bigint NOT NULL,
  hi bigint NOT NULL,
  -- 0 first run, 1 second run, 2 third run.
  kind smallint NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 0,
  owner bigint,
  fence bigint NOT NULL DEFAULT 0,
  -- Workers that were lost with it, or gave it up.
  lost smallint NOT NULL DEFAULT 0,
  needs text[] NOT NULL DEFAULT '{}',
  -- Of a second or third run: the answer that it is compared with, and who has run it before.
  answer bigint,
  not_by bigint[] NOT NULL DEFAULT '{}',
  CHECK (lo < hi),
  CONSTRAINT once EXCLUDE USING gist (
    int8range((class::bigint << 40) + lo, (class::bigint << 40) + hi) WITH &&
  ) WHERE (kind = 0)
) WITH (fillfactor = 50);
CREATE INDEX span_free ON vyre.span (class, kind DESC, id) WHERE state = 0;
CREATE INDEX span_held ON vyre.span (owner) WHERE state = 1;
CREATE INDEX span_open ON vyre.span (class) WHERE state < 2;
CREATE INDEX span_checks ON vyre.span (class) WHERE kind > 0;

CREATE TABLE vyre.answer (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class int NOT NULL REFERENCES vyre.class ON DELETE CASCADE,
  span bigint NOT NULL,
  kind smallint NOT NULL,
  lo bigint NOT NULL,
  hi bigint NOT NULL,
  worker bigint NOT NULL,
  fence bigint NOT NULL,
  records bytea NOT NULL,
  took_ms bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  void boolean NOT NULL DEFAULT false
);
-- Hashes do not get smaller.
ALTER TABLE vyre.answer ALTER COLUMN records SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX answer_span ON vyre.answer (span) WHERE NOT void;
CREATE INDEX answer_class ON vyre.answer (class, kind, lo) WHERE NOT void;
CREATE INDEX answer_worker ON vyre.answer (worker) WHERE NOT void;

CREATE TABLE vyre.failure (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  answer bigint NOT NULL REFERENCES vyre.answer ON DELETE CASCADE,
  class int NOT NULL,
  op text NOT NULL,
  what text NOT NULL
);
CREATE INDEX failure_op ON vyre.failure (class, op);

CREATE TABLE vyre.remark (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  answer bigint NOT NULL REFERENCES vyre.answer ON DELETE CASCADE,
  class int NOT NULL,
  section text NOT NULL,
  kind text NOT NULL,
  what text NOT NULL
);
CREATE INDEX remark_class ON vyre.remark (class, kind);

-- Two answers about the same units that are not the same.
CREATE TABLE vyre.conflict (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class int NOT NULL REFERENCES vyre.class ON DELETE CASCADE,
  lo bigint NOT NULL,
  hi bigint NOT NULL,
  one bigint NOT NULL,
  other bigint NOT NULL,
  -- 0 waits for the reference, 1 waits for a third run, 2 is settled.
  state smallint NOT NULL DEFAULT 0,
  liar bigint,
  why text,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX conflict_open ON vyre.conflict (class) WHERE state < 2;

-- Takes a range back. Whoever was lost with it is counted, if it was lost: after three the units go their own ways, and one that was lost
-- three times is run case by case.
CREATE FUNCTION vyre.take_back(which bigint, is_lost boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s vyre.span;
BEGIN
  UPDATE vyre.span SET state = 0, owner = NULL, fence = fence + 1, lost = lost + is_lost::int
    WHERE id = which AND state = 1 RETURNING * INTO s;
  IF FOUND AND s.lost >= 3 AND s.hi - s.lo > 1 THEN
    UPDATE vyre.span SET hi = lo + 1, lost = 2 WHERE id = which;
    INSERT INTO vyre.span (class, lo, hi, kind, lost, needs, answer, not_by)
      SELECT s.class, n, n + 1, s.kind, 2, s.needs, s.answer, s.not_by FROM generate_series(s.lo + 1, s.hi - 1) n;
  END IF;
END $$;

-- Takes back what workers hold that are not heard from, and has second runs made as long as there are too few. Does nothing if somebody
-- did it a moment ago, or does it now; says whether it was done.
CREATE FUNCTION vyre.sweep(which int, pause interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  c record;
  held bigint;
  done bigint;
  checked bigint;
  first record;
  spot bigint;
BEGIN
  SELECT class.id, campaign.lease, campaign.second, campaign.units INTO c FROM vyre.class JOIN vyre.campaign ON campaign.id = class.campaign
    WHERE class.id = which AND class.swept < clock_timestamp() - pause FOR UPDATE OF class SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE vyre.class SET swept = clock_timestamp() WHERE id = which;
  FOR held IN
    SELECT span.id FROM vyre.span JOIN vyre.worker ON worker.id = span.owner
      WHERE span.class = which AND span.state = 1 AND worker.seen < clock_timestamp() - make_interval(secs => c.lease)
      FOR UPDATE OF span SKIP LOCKED
  LOOP
    PERFORM vyre.take_back(held, true);
  END LOOP;
  SELECT coalesce(sum(hi - lo), 0) INTO done FROM vyre.answer WHERE class = which AND kind = 0 AND NOT void;
  SELECT coalesce(sum(hi - lo), 0) INTO checked FROM vyre.span WHERE class = which AND kind = 1;
  WHILE checked < c.second * done LOOP
    -- A place among the units, drawn when the answers are in: nobody knows beforehand who is asked twice.
    spot := floor(random() * c.units);
    SELECT a.id, a.lo, a.hi, a.worker, s.needs, s.lost INTO first
      FROM vyre.answer a JOIN vyre.span s ON s.id = a.span
      WHERE a.class = which AND a.kind = 0 AND NOT a.void
        AND a.lo >= spot
        AND NOT EXISTS (SELECT FROM vyre.span o WHERE o.kind = 1 AND o.class = which AND o.answer = a.id)
      ORDER BY a.lo LIMIT 1;
    IF NOT FOUND THEN
      SELECT a.id, a.lo, a.hi, a.worker, s.needs, s.lost INTO first
        FROM vyre.answer a JOIN vyre.span s ON s.id = a.span
        WHERE a.class = which AND a.kind = 0 AND NOT a.void
          AND NOT EXISTS (SELECT FROM vyre.span o WHERE o.kind = 1 AND o.class = which AND o.answer = a.id)
        ORDER BY a.lo LIMIT 1;
    END IF;
    EXIT WHEN NOT FOUND;
    -- What three workers were lost with is not to cost three more.
    INSERT INTO vyre.span (class, lo, hi, kind, lost, needs, answer, not_by)
      VALUES (which, first.lo, first.hi, 1, CASE WHEN first.lost >= 3 THEN 3 ELSE 0 END, first.needs, first.id, ARRAY[first.worker]);
    checked := checked + first.hi - first.lo;
  END LOOP;
  RETURN true;
END $$;

-- Takes back what a worker was given and does not hold: answers of claim() that never reached it. Whoever asks says what it holds.
CREATE FUNCTION vyre.unheard(which bigint, holds jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  held bigint;
BEGIN
  FOR held IN
    SELECT id FROM vyre.span WHERE owner = which AND state = 1 AND NOT coalesce(holds, '[]'::jsonb) @> to_jsonb(id) FOR UPDATE
  LOOP
    PERFORM vyre.take_back(held, false);
  END LOOP;
END $$;

-- The worker of a token; its row is locked, and it has been heard from.
CREATE FUNCTION vyre.heard(ask jsonb) RETURNS vyre.worker LANGUAGE plpgsql AS $$
DECLARE
  w vyre.worker;
BEGIN
  UPDATE vyre.worker SET seen = clock_timestamp() WHERE token = ask->>'token' RETURNING * INTO w;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this worker is not known: the campaign was removed' USING ERRCODE = 'VY002';
  END IF;
  RETURN w;
END $$;

-- A worker says who it is, what it holds, and whether it leaves; it hears what the campaign is about.
CREATE FUNCTION vyre.beat(ask jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c vyre.campaign;
  k vyre.class;
  w vyre.worker;
BEGIN
  IF (ask->>'layout')::int <> (SELECT layout FROM vyre.about) THEN
    RAISE EXCEPTION 'layout %', (SELECT layout FROM vyre.about) USING ERRCODE = 'VY001';
  END IF;
  SELECT * INTO c FROM vyre.campaign WHERE name = ask->>'campaign';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no campaign `%`', ask->>'campaign' USING ERRCODE = 'VY002';
  END IF;
  UPDATE vyre.worker SET seen = clock_timestamp(), state = CASE WHEN state = 2 THEN 2 WHEN (ask->>'leaves')::boolean THEN 1 ELSE 0 END
    WHERE token = ask->>'token' RETURNING * INTO w;
  IF FOUND THEN
    SELECT * INTO k FROM vyre.class WHERE id = w.class;
    PERFORM vyre.unheard(w.id, ask->'holds');
  ELSE
    SELECT * INTO k FROM vyre.class WHERE campaign = c.id AND backend = ask->>'backend'
      AND (any_device OR fingerprint IS NULL
        OR fingerprint = ask->>'fingerprint' AND (version IS NULL OR version = ask->>'version'))
      ORDER BY fingerprint IS NULL, any_device, id LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('no_class', (SELECT jsonb_agg(jsonb_build_object('name', name, 'backend', backend,
        'fingerprint', fingerprint, 'version', version) ORDER BY id) FROM vyre.class WHERE campaign = c.id));
    END IF;
    -- The first one makes it the class of its device.
    UPDATE vyre.class SET fingerprint = CASE WHEN any_device THEN '*' ELSE ask->>'fingerprint' END,
        version = ask->>'version', device = ask->>'device', forms = ask->>'forms'
      WHERE id = k.id AND device IS NULL;
    INSERT INTO vyre.worker (class, token, name, fingerprint, caps)
      VALUES (k.id, ask->>'token', ask->>'name', ask->>'fingerprint', ARRAY(SELECT jsonb_array_elements_text(ask->'caps')))
      RETURNING * INTO w;
  END IF;
  PERFORM vyre.sweep(k.id, make_interval(secs => least(1, c.lease / 8)));
  RETURN jsonb_build_object('worker', w.id, 'class', k.name, 'spec', c.spec, 'units', c.units, 'lease', c.lease,
    'secret', encode(k.secret, 'hex'),
    'state', CASE WHEN w.state = 2 THEN 'banned' WHEN c.cancelled IS NOT NULL THEN 'cancelled' ELSE 'works' END);
END $$;

-- A range of at most so many units, or why there is none.
CREATE FUNCTION vyre.claim(ask jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  w vyre.worker;
  s vyre.span;
  want bigint := greatest(1, (ask->>'units')::bigint);
  lease interval;
  is_swept boolean;
BEGIN
  w := vyre.heard(ask);
  IF w.state = 2 THEN
    RETURN jsonb_build_object('over', 'banned');
  END IF;
  SELECT make_interval(secs => campaign.lease) INTO lease FROM vyre.campaign JOIN vyre.class ON class.campaign = campaign.id
    WHERE class.id = w.class AND cancelled IS NULL;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('over', 'cancelled');
  END IF;
  -- Asking counts as being there, so that a worker which asks on and on would otherwise keep what it never heard of for ever.
  IF ask ? 'holds' THEN
    PERFORM vyre.unheard(w.id, ask->'holds');
  END IF;
  FOR attempt IN 1..2 LOOP
    SELECT * INTO s FROM vyre.span WHERE class = w.class AND state = 0 AND needs <@ w.caps AND w.id <> ALL (not_by)
      ORDER BY kind DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      -- What nobody here is capable of is asked all the same: that the device cannot run it is an answer too.
      SELECT * INTO s FROM vyre.span WHERE class = w.class AND state = 0 AND w.id <> ALL (not_by) AND NOT EXISTS (
          SELECT FROM vyre.worker o WHERE o.class = w.class AND o.state = 0 AND o.seen > clock_timestamp() - lease
            AND span.needs <@ o.caps)
        ORDER BY kind DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    EXIT WHEN FOUND;
    is_swept := vyre.sweep(w.class, make_interval(secs => 0));
  END LOOP;
  IF s.id IS NULL THEN
    IF EXISTS (SELECT FROM vyre.conflict WHERE class = w.class AND state = 0) THEN
      RETURN jsonb_build_object('wait', 'judge');
    END IF;
    -- Somebody else sweeps at this moment, and may find work.
    IF NOT is_swept THEN
      RETURN jsonb_build_object('wait', 'others');
    END IF;
    -- Second runs of what this one ran itself are waited for as long as somebody else is there to do them.
    IF EXISTS (SELECT FROM vyre.span WHERE class = w.class AND state < 2 AND (state = 1 OR w.id <> ALL (not_by) OR EXISTS (
        SELECT FROM vyre.worker o WHERE o.class = w.class AND o.state = 0 AND o.id <> ALL (span.not_by)
          AND o.seen > clock_timestamp() - lease)))
    THEN
      RETURN jsonb_build_object('wait', 'others');
    END IF;
    RETURN jsonb_build_object('over', 'done');
  END IF;
  IF s.hi - s.lo > want THEN
    UPDATE vyre.span SET state = 1, owner = w.id, fence = fence + 1, hi = lo + want WHERE id = s.id;
    INSERT INTO vyre.span (class, lo, hi, kind, lost, needs, answer, not_by)
      VALUES (s.class, s.lo + want, s.hi, s.kind, s.lost, s.needs, s.answer, s.not_by);
    s.hi := s.lo + want;
  ELSE
    UPDATE vyre.span SET state = 1, owner = w.id, fence = fence + 1 WHERE id = s.id;
  END IF;
  RETURN jsonb_build_object('span', s.id, 'lo', s.lo, 'hi', s.hi, 'fence', s.fence + 1, 'kind', s.kind, 'alone', s.lost >= 3);
END $$;

-- What came of a range, all of it or nothing. `to` says how far it got; what is left is there for others, in two parts.
CREATE FUNCTION vyre.finish(ask jsonb, records bytea) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  w vyre.worker;
  s vyre.span;
  upto bigint := (ask->>'to')::bigint;
  middle bigint;
  mine bigint;
  before record;
  part bytea;
BEGIN
  w := vyre.heard(ask);
  SELECT * INTO s FROM vyre.span WHERE id = (ask->>'span')::bigint FOR UPDATE;
  IF s.state = 2 AND s.owner = w.id AND s.fence = (ask->>'fence')::bigint AND EXISTS (
      SELECT FROM vyre.answer a WHERE a.span = s.id AND NOT a.void AND a.records = finish.records AND a.hi = upto)
  THEN
    -- It was taken, and the worker did not hear of it.
    RETURN jsonb_build_object('taken', true, 'again', true);
  END IF;
  IF s.id IS NULL OR s.state <> 1 OR s.owner <> w.id OR s.fence <> (ask->>'fence')::bigint THEN
    UPDATE vyre.worker SET late = late + 1 WHERE id = w.id;
    RETURN jsonb_build_object('late', true);
  END IF;
  IF ask ? 'gives_up' THEN
    PERFORM vyre.take_back(s.id, true);
    RETURN jsonb_build_object('taken', true);
  END IF;
  IF upto = s.lo THEN
    PERFORM vyre.take_back(s.id, false);
    RETURN jsonb_build_object('taken', true);
  END IF;
  IF upto IS NULL OR upto < s.lo OR upto > s.hi OR length(records) <> (upto - s.lo) * 97 THEN
    RAISE EXCEPTION 'an answer of % bytes for the units % to % of % to %', length(records), s.lo, upto, s.lo, s.hi
      USING ERRCODE = 'VY003';
  END IF;
  IF upto < s.hi THEN
    middle := upto + (s.hi - upto + 1) / 2;
    UPDATE vyre.span SET hi = upto WHERE id = s.id;
    INSERT INTO vyre.span (class, lo, hi, kind, needs, answer, not_by)
      SELECT s.class, l, h, s.kind, s.needs, s.answer, s.not_by
        FROM (VALUES (upto, middle), (middle, s.hi)) AS part (l, h) WHERE l < h;
  END IF;
  UPDATE vyre.span SET state = 2 WHERE id = s.id;
  INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records, took_ms)
    VALUES (s.class, s.id, s.kind, s.lo, upto, w.id, s.fence, finish.records, coalesce((ask->>'took_ms')::bigint, 0))
    RETURNING id INTO mine;
  UPDATE vyre.worker SET claims = claims + 1, units = units + upto - s.lo, busy_ms = busy_ms + coalesce((ask->>'took_ms')::bigint, 0)
    WHERE id = w.id;
  IF s.kind = 0 THEN
    INSERT INTO vyre.failure (answer, class, op, what)
      SELECT mine, s.class, f->>'op_id', f::text FROM jsonb_array_elements(coalesce(ask->'failures', '[]')) f
        WHERE (SELECT count(*) FROM vyre.failure o WHERE o.class = s.class AND o.op = f->>'op_id') < 256;
    INSERT INTO vyre.remark (answer, class, section, kind, what)
      SELECT mine, s.class, r->>0, r->>1, r->>2 FROM jsonb_array_elements(coalesce(ask->'remarks', '[]')) r;
  ELSIF s.kind = 1 THEN
    SELECT a.* INTO before FROM vyre.answer a WHERE a.id = s.answer AND NOT a.void;
    IF FOUND THEN
      part := substring(before.records FROM ((s.lo - before.lo) * 97 + 1)::int FOR ((upto - s.lo) * 97)::int);
      IF part <> finish.records THEN
        INSERT INTO vyre.conflict (class, lo, hi, one, other) VALUES (s.class, s.lo, upto, before.id, mine);
      END IF;
    END IF;
  END IF;
  RETURN jsonb_build_object('taken', true);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vyre FROM PUBLIC;
