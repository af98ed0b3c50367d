-- Takes from a bucket in one step, by the server's clock; the arithmetic is that of abide's
-- policies. Nothing is taken if what operators have set is not what the caller believes: then it
-- is told what is set.
--
-- KEYS: the bucket; rateLimit:learning, :enforcing, :ignoring, :capacity:NAME, :rateSeconds:NAME
-- ARGV: the name; what is believed of the five; algorithm (w or c), capacity, span in
-- milliseconds, cost
local SLOTS = 16
local LIVE = SLOTS + 1
local LONGEST = 64

local function given(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then return '=' .. string.sub(value, 1, LONGEST) end
  return '-'
end

local function member(key)
  local found = redis.pcall('SISMEMBER', key, ARGV[1])
  return found == 1 and '1' or '0'
end

local set = {given(KEYS[2]), member(KEYS[3]), member(KEYS[4]), given(KEYS[5]), given(KEYS[6])}
for i = 1, 5 do
  if set[i] ~= ARGV[i + 1] then return {'set', unpack(set)} end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local algorithm, capacity = ARGV[7], tonumber(ARGV[8])
local span, cost = tonumber(ARGV[9]), tonumber(ARGV[10])
cost = math.min(math.max(cost, 1), math.max(capacity, 1))

-- A bucket: w, when it opened, used; or c, width of a slot, newest slot, the cells of each.
local bucket = {}
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'string' then
  for word in string.gmatch(stored, '%S+') do bucket[#bucket + 1] = tonumber(word) or word end
end
local function whole(count)
  if #bucket ~= count then return false end
  for i = 2, count do if type(bucket[i]) ~= 'number' then return false end end
  return true
end
local is_window = bucket[1] == 'w' and whole(3)
local is_cells = bucket[1] == 'c' and whole(3 + LIVE) and bucket[2] > 0

local width = math.ceil(span / SLOTS)
local function free_at(slot, of) return (slot + LIVE) * of end

-- The cells that are not free yet, the newest first.
local function live_cells()
  local current = math.floor(now / width)
  local live = {}
  for i = 1, LIVE do live[i] = 0 end
  if is_cells and bucket[2] == width then
    local newest = bucket[3]
    if newest > current then
      if newest - current > SLOTS then return current, live end
      for i = 1, LIVE do live[i] = bucket[3 + i] end
      return newest, live
    end
    for i = 1, LIVE - (current - newest) do live[i + current - newest] = bucket[3 + i] end
  elseif is_cells then
    for i = 1, LIVE do
      local slot = math.max(bucket[3] - (i - 1), 0)
      local ended = (slot + 1) * bucket[2] - 1
      local age = current - math.min(math.floor(ended / width), current)
      if age < LIVE then live[age + 1] = live[age + 1] + bucket[3 + i] end
    end
  elseif is_window and bucket[2] + span > now and bucket[2] <= now then
    live[1] = bucket[3]
  end
  return current, live
end

local function total(live)
  local sum = 0
  for i = 1, LIVE do sum = sum + live[i] end
  return sum
end

local function number(n) return string.format('%.0f', n) end

local function keep(text, until_ms)
  redis.call('SET', KEYS[1], text, 'PX', number(math.max(until_ms - now, 1)))
end

if algorithm == 'w' then
  local opened, used = now, 0
  if is_window then
    opened, used = bucket[2], bucket[3]
  elseif is_cells then
    local _, live = live_cells()
    used = total(live)
  end
  if opened + span <= now or opened > now + span then opened, used = now, 0 end
  local admitted = cost <= capacity - used
  if admitted then used = used + cost end
  local reset = math.max(opened + span, now + 1)
  keep('w ' .. number(opened) .. ' ' .. number(used), reset)
  return {'taken', admitted and 1 or 0, math.max(capacity - used, 0), reset - now,
    admitted and -1 or reset - now}
end

local newest, live = live_cells()
local used = total(live)
local admitted = cost <= capacity - used
local retry = -1
if admitted then
  live[1] = live[1] + cost
else
  local needed = used + cost - capacity
  local at = now + span
  for i = LIVE, 1, -1 do
    needed = needed - live[i]
    if needed <= 0 then
      at = free_at(math.max(newest - (i - 1), 0), width)
      break
    end
  end
  retry = math.max(at, now + 1) - now
end
local reset = now + span
for i = 1, LIVE do
  if live[i] > 0 then
    reset = free_at(math.max(newest - (i - 1), 0), width)
    break
  end
end
reset = math.max(reset, now + 1)
local words = {'c', number(width), number(newest)}
for i = 1, LIVE do words[3 + i] = number(live[i]) end
keep(table.concat(words, ' '), free_at(newest, width))
return {'taken', admitted and 1 or 0, math.max(capacity - total(live), 0), reset - now, retry}
