-- The tables of campaigns, and the three functions that workers may call.
--
-- A campaign has device classes, and each class has every unit of the plan once: `span` divides the numbers of the units into ranges. A
-- range is free (0), claimed (1) or done (2). A worker keeps what it has claimed as long as it is heard from: there is one lease per
-- worker, by the clock of this server and no other. Each time a range is handed out or taken back its fence number grows, and an answer with
-- an older number is late and changes nothing. Answers to first runs that count cannot overlap: a constraint sees to that.
--
-- Locks are taken in one order: the worker's own row, then its class, then ranges. Rows that somebody else holds are skipped, not waited
-- for, wherever they are not the caller's own.

CREATE SCHEMA vyre;
REVOKE ALL ON SCHEMA vyre FROM PUBLIC;

-- The version of all this. Programs that know another one are refused, and refuse to touch it.
CREATE TABLE vyre.about (layout int NOT NULL);
INSERT INTO vyre.about VALUES (1);

CREATE TABLE vyre.campaign (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  created timestamptz NOT NULL DEFAULT clock_timestamp(),
  cancelled timestamptz,
  -- What workers are told: suite, queries, tier, seed, whether the seed is a verifier's.
  spec jsonb NOT NULL,
  units bigint NOT NULL,
  -- Seconds without a word from a worker after which its ranges are taken back.
  lease double precision NOT NULL,
  -- The share of units that a second worker runs.
  second double precision NOT NULL
);

CREATE TABLE vyre.section (
  campaign int NOT NULL REFERENCES vyre.campaign ON DELETE CASCADE,
  number int NOT NULL,
  -- How many units come before it, and how many it has.
  before bigint NOT NULL,
  units bigint NOT NULL,
  -- Cases per unit.
  unit bigint NOT NULL,
  info text NOT NULL,
  PRIMARY KEY (campaign, number)
);

-- Device classes are numbers everywhere else. A class is for one device: the first that comes, the one that was named, or any.
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
  -- Whether all first runs are in and enough of them were drawn for a second run.
  is_drawn boolean NOT NULL DEFAULT false,
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
  seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- 0 works, 1 has left, 2 is not believed.
  state smallint NOT NULL DEFAULT 0,
  claims bigint NOT NULL DEFAULT 0,
  units bigint NOT NULL DEFAULT 0,
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
  -- How many workers were lost while they ran it, or could not run it.
  lost smallint NOT NULL DEFAULT 0,
  needs text[] NOT NULL DEFAULT '{}',
  -- Of a second or third run: the answer that it is compared with, and the workers that ran it before.
  answer bigint,
  not_by bigint[] NOT NULL DEFAULT '{}',
  CHECK (lo < hi)
) WITH (fillfactor = 50);
CREATE INDEX span_free ON vyre.span (class, kind DESC, id) WHERE state = 0;
CREATE INDEX span_held ON vyre.span (owner) WHERE state = 1;
CREATE INDEX span_open ON vyre.span (class) WHERE state < 2;
CREATE INDEX span_checks ON vyre.span (class, answer) WHERE kind > 0;

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
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  void boolean NOT NULL DEFAULT false,
  -- No unit counts twice.
  CONSTRAINT once EXCLUDE USING gist (
    int8range((class::bigint << 40) + lo, (class::bigint << 40) + hi) WITH &&
  ) WHERE (kind = 0 AND NOT void)
);
-- Hashes cannot be compressed.
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

-- Two answers to the same range that differ.
CREATE TABLE vyre.conflict (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class int NOT NULL REFERENCES vyre.class ON DELETE CASCADE,
  lo bigint NOT NULL,
  hi bigint NOT NULL,
  one bigint NOT NULL,
  other bigint NOT NULL,
  -- 0 waits for the reference, 1 waits for a third run, 2 is settled.
  state smallint NOT NULL DEFAULT 0,
  why text
);
CREATE INDEX conflict_open ON vyre.conflict (class) WHERE state < 2;

-- Makes a claimed range free again. If its worker was lost this is counted: after the third time the range is divided into single units,
-- and a unit with which three workers were lost is run case by case.
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

-- A number from 0 up to 1 that nobody can foresee. Not random(): whoever has a session may choose what that gives, with setseed().
CREATE FUNCTION vyre.draw() RETURNS double precision LANGUAGE sql VOLATILE AS $$
  SELECT ('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint / 281474976710656.0::double precision
$$;

-- Has the range of an answer run a second time, by another worker.
CREATE FUNCTION vyre.check_again(which bigint) RETURNS void LANGUAGE sql AS $$
  -- A unit with which three workers were lost need not cost three more.
  INSERT INTO vyre.span (class, lo, hi, kind, lost, needs, answer, not_by)
    SELECT a.class, a.lo, a.hi, 1, CASE WHEN s.lost >= 3 THEN 3 ELSE 0 END, s.needs, a.id, ARRAY[a.worker]
      FROM vyre.answer a JOIN vyre.span s ON s.id = a.span WHERE a.id = which
$$;

-- Takes back the ranges of workers that are not heard from, and draws what is missing of second runs. Does nothing if that was done less
-- than `pause` ago or somebody does it at this moment; says whether it was done.
CREATE FUNCTION vyre.sweep(which int, pause interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  c record;
  held bigint;
  checked bigint;
  spot bigint;
  drawn record;
BEGIN
  SELECT class.id, class.is_drawn, campaign.lease, campaign.second, campaign.units INTO c
    FROM vyre.class JOIN vyre.campaign ON campaign.id = class.campaign
    WHERE class.id = which AND class.swept < clock_timestamp() - pause FOR NO KEY UPDATE OF class SKIP LOCKED;
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
  IF c.is_drawn OR EXISTS (SELECT FROM vyre.span WHERE class = which AND state < 2 AND kind = 0) THEN
    RETURN true;
  END IF;
  -- Each answer was drawn with the same probability when it came (see finish). If chance drew too few, the rest is drawn here, from all
  -- answers: drawing earlier would take early answers more often than late ones.
  SELECT coalesce(sum(hi - lo), 0) INTO checked FROM vyre.span WHERE class = which AND kind = 1;
  WHILE checked < c.second * c.units LOOP
    spot := floor(vyre.draw() * c.units);
    SELECT a.id, a.hi - a.lo AS units INTO drawn FROM vyre.answer a
      WHERE a.class = which AND a.kind = 0 AND NOT a.void AND a.lo >= spot
        AND NOT EXISTS (SELECT FROM vyre.span o WHERE o.class = which AND o.kind = 1 AND o.answer = a.id)
      ORDER BY a.lo LIMIT 1;
    IF NOT FOUND THEN
      SELECT a.id, a.hi - a.lo AS units INTO drawn FROM vyre.answer a
        WHERE a.class = which AND a.kind = 0 AND NOT a.void
          AND NOT EXISTS (SELECT FROM vyre.span o WHERE o.class = which AND o.kind = 1 AND o.answer = a.id)
        ORDER BY a.lo LIMIT 1;
    END IF;
    EXIT WHEN NOT FOUND;
    PERFORM vyre.check_again(drawn.id);
    checked := checked + drawn.units;
  END LOOP;
  UPDATE vyre.class SET is_drawn = true WHERE id = which;
  RETURN true;
END $$;

-- Takes back what a worker was given and does not know of: replies of claim() that never reached it. The worker says what it holds.
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

-- The worker that has this token; locks its row and notes that it was heard from.
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

-- A worker says who it is, what it holds and whether it leaves, and is told what the campaign is about.
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
      ORDER BY fingerprint IS NULL, any_device, id LIMIT 1 FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('no_class', (SELECT jsonb_agg(jsonb_build_object('name', name, 'backend', backend,
        'fingerprint', fingerprint, 'version', version) ORDER BY id) FROM vyre.class WHERE campaign = c.id));
    END IF;
    -- A class is for the device of the first worker that comes.
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

-- Gives a range of at most `units` units, or the reason why there is none.
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
  -- A worker that asks is heard from, so without this it would keep for ever what it never heard of.
  IF ask ? 'holds' THEN
    PERFORM vyre.unheard(w.id, ask->'holds');
  END IF;
  FOR attempt IN 1..2 LOOP
    SELECT * INTO s FROM vyre.span WHERE class = w.class AND state = 0 AND needs <@ w.caps AND w.id <> ALL (not_by)
      ORDER BY kind DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      -- A range that needs what no worker here has goes to anybody: that the device cannot run it is an answer too.
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
    -- Somebody else looks at this moment, and may find work.
    IF NOT is_swept THEN
      RETURN jsonb_build_object('wait', 'others');
    END IF;
    -- A worker waits for second runs that it may not do itself as long as somebody else is there to do them.
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

-- Takes the answer to a range, all of it or nothing. `to` says how far the worker got; the rest becomes free again, in two parts.
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
  -- As heard() does, with what is counted below in the same update.
  SELECT * INTO w FROM vyre.worker WHERE token = ask->>'token' FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM vyre.heard(ask);
  END IF;
  SELECT * INTO s FROM vyre.span WHERE id = (ask->>'span')::bigint FOR UPDATE;
  IF s.state = 2 AND s.owner = w.id AND s.fence = (ask->>'fence')::bigint AND EXISTS (
      SELECT FROM vyre.answer a WHERE a.span = s.id AND NOT a.void AND a.records = finish.records AND a.hi = upto)
  THEN
    -- It was taken before, and the worker did not hear of it.
    RETURN jsonb_build_object('taken', true, 'again', true);
  END IF;
  IF s.id IS NULL OR s.state <> 1 OR s.owner <> w.id OR s.fence <> (ask->>'fence')::bigint THEN
    UPDATE vyre.worker SET seen = clock_timestamp(), late = late + 1 WHERE id = w.id;
    RETURN jsonb_build_object('late', true);
  END IF;
  IF ask ? 'gives_up' OR upto = s.lo THEN
    UPDATE vyre.worker SET seen = clock_timestamp() WHERE id = w.id;
    PERFORM vyre.take_back(s.id, ask ? 'gives_up');
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
  INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records)
    VALUES (s.class, s.id, s.kind, s.lo, upto, w.id, s.fence, finish.records) RETURNING id INTO mine;
  UPDATE vyre.worker SET seen = clock_timestamp(), claims = claims + 1, units = units + upto - s.lo WHERE id = w.id;
  IF s.kind = 0 THEN
    INSERT INTO vyre.failure (answer, class, op, what)
      SELECT mine, s.class, f->>'op_id', f::text FROM jsonb_array_elements(coalesce(ask->'failures', '[]')) f
        WHERE (SELECT count(*) FROM vyre.failure o WHERE o.class = s.class AND o.op = f->>'op_id') < 256;
    INSERT INTO vyre.remark (answer, class, section, kind, what)
      SELECT mine, s.class, r->>0, r->>1, r->>2 FROM jsonb_array_elements(coalesce(ask->'remarks', '[]')) r;
    -- Drawn when the answer is in, so that nobody knows beforehand which range is run again.
    IF vyre.draw() < (SELECT second FROM vyre.campaign JOIN vyre.class ON class.campaign = campaign.id WHERE class.id = s.class) THEN
      PERFORM vyre.check_again(mine);
    END IF;
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
